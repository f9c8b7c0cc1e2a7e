"""FSDP with flat parameters over frozen and trained weights, which it refuses to mix."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, rule, versions

POLICY = "fsdp_auto_wrap_policy"
"""PEFT's function that gives adapters units of their own."""
SINCE = "4.39"
"""From this release on the Trainer takes that policy for PEFT models by itself."""


@rule(severity="error", needs=("sharding.use_orig_params", "sharding.kind", "method"))
def check(view: RunView) -> Iterator[Found]:
    run = view.run
    kept, kind, method, framework = run.sharding.use_orig_params, run.sharding.kind, run.method, run.framework
    if kept is None or kept.value or kept.place is None or kind is None or kind.value != "fsdp":
        return
    if method is None or method.value not in ("lora", "qlora") or framework is None:
        return
    if any(f"{POLICY}(" in fragment.document.text for fragment in view.fragments):
        return
    installed = run.versions.get("transformers")
    allowed = versions.parse(installed.value) if installed is not None else None
    newest, since = allowed.highest if allowed else None, versions.version(SINCE)
    old = newest is not None and since is not None and newest < since
    if framework.value not in ("accelerate", "torch") and not old:
        return
    yield Found(
        at=kept,
        message=f"`{kept.key}: {kept.raw}`: one flat parameter would hold frozen base and trained adapter: "
        "`Must flatten tensors with uniform requires_grad`",
        help=f"set `{kept.key.rpartition('.')[2]}: true`, or wrap by PEFT's `{POLICY}(model)`",
        notes=[(method, "an adapter is trained"), (kind, "FSDP is asked for here")],
    )
