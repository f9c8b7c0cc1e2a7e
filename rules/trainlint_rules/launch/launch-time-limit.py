"""A job with a time limit whose only checkpoint comes at the end of the training, or never."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, known, rule, said, started

FORMATS = ("hf-trainer", "trl", "llamafactory", "axolotl", "ms-swift", "shell-launcher", "python-script")


@rule(severity="info", needs=("launch.time",), formats=FORMATS)
def check(view: RunView) -> Iterator[Found]:
    run = view.run
    limit, save, every = run.launch.time, run.checkpoint.strategy, run.checkpoint.every
    if limit is None or not limit.written:
        return
    last = ""
    steps, total = known(every), known(run.schedule.total_steps) or known(run.schedule.max_steps)
    if save is not None and save.written and save.value == "no":
        last = f"`{said(save)}` writes no checkpoint"
    elif save is not None and save.written and save.value == "epoch" and (known(run.schedule.epochs) or 2) <= 1:
        last = f"`{said(save)}` in a training of one epoch writes the first at the end"
    elif (save is None or save.value == "steps") and every and every.written and steps and total and steps >= total:
        last = f"`{said(every)}` in a training of {total} steps writes the first at the end"
    signal = any("signal" in started.directives(fragment) for fragment in view.fragments)
    if last and not signal:
        hours, minutes = limit.value / 3600, limit.value / 60
        span = f"{hours:g} h" if hours >= 1 else f"{minutes:g} min"
        yield Found(
            at=every if "steps" in last and every is not None and every.written else save or limit,
            message=f"{last}, and the job is ended after {span}: what does not finish is lost",
            help="save by steps, several times within the limit",
            notes=[(limit, "the limit")],
        )
