"""Keys of a GRPO config that TRL took away."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, departed, rename_key, rule, said

FORMATS = ("trl", "python-script", "shell-launcher")
CONFIG = "GRPOConfig"
HELP = {
    "vllm_device": "set `vllm_mode: colocate`, or start `trl vllm-serve` on devices of its own",
    "vllm_dtype": "remove it: vLLM takes the model's",
    "vllm_max_model_len": "write `vllm_max_model_length`",
    "max_prompt_length": "cut the prompts in the data",
}


@rule(severity="error", formats=FORMATS, outranks=("schema-unknown-key",))
def check(view: RunView) -> Iterator[Found]:
    objective = view.run.objective
    if view.root.section != CONFIG and (objective is None or objective.value != "grpo"):
        return
    if "unsloth" in view.root.document.text:
        return
    for gone in departed(view.root, view.run.versions, "trl", CONFIG):
        new = gone.key.renamed_to
        yield Found(
            at=gone.entry.key,
            message=f"`{said(gone.entry)}` is gone from `{CONFIG}` since TRL {gone.left}"
            + (f", this is {gone.release}" if gone.pin is not None else ""),
            help=f"write `{new}`" if new else HELP.get(gone.entry.name, "remove it"),
            notes=[(gone.pin, "the release")],
            fix=rename_key(gone.entry, new, "unsafe")
            if new and view.root.format == "trl" and new not in view.root.keys
            else None,
            severity=None if gone.certain else "info",
        )
