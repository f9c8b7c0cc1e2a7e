"""Adapters on a mixture's router, or on layers that leave out its fused experts."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, rule

ROUTERS = ("gate", "router", "shared_expert_gate")
ALWAYS_FUSED = ("gpt_oss", "llama4", "llama4_text", "granitemoe", "dbrx", "jetmoe")
"""Their experts are three-dimensional tensors in every release."""
REACHES = ("target_parameters", "quantize_moe_experts", "lora_target_parameters")


@rule(severity="info", needs=("model.shape.experts", "adapter.targets"))
def check(view: RunView) -> Iterator[Found]:
    run = view.run
    targets, experts, kind = run.get("adapter.targets"), run.model.shape.experts, run.model.type
    if targets is None or not isinstance(targets.value, tuple) or targets.place is None:
        return
    if experts is None or experts.value < 2 or run.method is None or run.method.value not in ("lora", "qlora"):
        return
    routers = [name for name in targets.value if name.rpartition(".")[2] in ROUTERS]
    if routers:
        said = ", ".join(f"`{name}`" for name in routers)
        yield Found(
            at=targets,
            message=f"{said}: the router of {experts.value} experts is adapted, which shifts tokens between them",
            help="leave the router out",
            notes=[(run.model.id, "a mixture of experts")],
        )
    elif "all-linear" in targets.value and kind is not None and kind.value in ALWAYS_FUSED:
        if any(word in fragment.document.text for fragment in view.fragments for word in REACHES):
            return
        yield Found(
            at=targets,
            message=f"`{targets.key}`: all linear layers leave the experts out: {kind.value} holds its "
            f"{experts.value} experts as parameters, so attention alone is adapted",
            help="name the experts in PEFT's `target_parameters` (0.17 and later) if they are to train",
            notes=[(run.model.id, "a mixture of experts")],
        )
