"""What `accelerate launch` does is left to a config in the user's home."""

from collections.abc import Iterator

from trainlint.api import FileView, Found, rule, started

OPEN = frozenset(
    (
        "main_process_port", "main_process_ip", "m", "module", "no_python", "quiet", "q", "debug", "same_network",
        "main_training_function", "num_cpu_threads_per_process", "enable_cpu_affinity", "rdzv_backend", "log_dir",
        "tee", "role",
    )
)  # fmt: skip
"""Options that say nothing of devices, precision or engine."""


@rule(severity="info", on="file")
def check(view: FileView) -> Iterator[Found]:
    text = view.document.text
    if "accelerate config" in text or "default_config" in text or "ACCELERATE_" in text:
        return
    for start in started.trainings(view.fragment):
        if start.launcher == "accelerate" and not start.command.open and start.options.keys() <= OPEN:
            yield Found(
                at=start.word.place,
                message="`accelerate launch` without a config or options takes the user's `default_config.yaml`, with "
                "whatever engine, precision and processes stand there",
                help="add `--config_file FILE`, or `--num_processes` and `--mixed_precision`",
            )
