"""`max_seq_length` in an SFT config of a TRL that calls it `max_length`."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, departed, rename_key, rule, said

FORMATS = ("trl", "python-script", "shell-launcher")
NAME = "max_seq_length"
OTHERS = ("DPOConfig", "GRPOConfig", "KTOConfig", "ORPOConfig", "RewardConfig", "PPOConfig")


@rule(severity="error", formats=FORMATS, outranks=("schema-unknown-key",))
def check(view: RunView) -> Iterator[Found]:
    root = view.root
    if root.section in OTHERS or root.framework not in ("trl", "torch", "") or "unsloth" in root.document.text:
        return  # Unsloth keeps the old name
    if root.facts.get("own_loop"):
        return
    for gone in departed(root, view.run.versions, "trl", "SFTConfig"):
        if gone.entry.name != NAME:
            continue
        plain = root.format == "trl" and "max_length" not in root.keys
        yield Found(
            at=gone.entry.key,
            message=f"`{said(gone.entry)}` is `max_length` since TRL 0.16 and gone since 0.20"
            + (f", this is {gone.release}" if gone.certain else ""),
            help="write `max_length`",
            notes=[(gone.pin, "the release")],
            fix=rename_key(gone.entry, "max_length", "safe" if gone.certain else "unsafe") if plain else None,
            severity=None if gone.certain else "info",
        )
