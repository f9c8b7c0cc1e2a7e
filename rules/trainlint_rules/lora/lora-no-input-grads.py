"""Reentrant checkpointing over a frozen base: no input of a block needs a gradient, so nothing below it gets one."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, rule

HANDLED = ("enable_input_require_grads", "prepare_model_for_kbit_training", "prepare_model_for_int8_training")
HOOKS = ("make_inputs_require_grad", "requires_grad_(True)", "inputs_require_grad")


@rule(severity="error", formats=("python-script",), needs=("checkpointing.reentrant", "method"))
def check(view: RunView) -> Iterator[Found]:
    run, script = view.run, view.root
    kind, reentrant, method = run.checkpointing.kind, run.checkpointing.reentrant, run.method
    calls = script.facts.get("calls")
    if kind is None or kind.value != "full" or kind.place is None or not isinstance(calls, tuple):
        return
    if reentrant is None or not reentrant.value or method is None or method.value != "lora":
        return
    if run.framework is None or run.framework.value not in ("transformers", "accelerate", "torch"):
        return  # TRL and Unsloth see to it themselves
    if any(call.short in HANDLED for call in calls) or any(word in script.document.text for word in HOOKS):
        return
    wraps = [call for call in calls if call.short == "get_peft_model"]
    if not wraps or "modules_to_save" in script.document.text:
        return
    enabled = [call for call in calls if call.short == "gradient_checkpointing_enable"]
    installed = run.versions.get("peft")
    before = any(call.place < wraps[0].place for call in enabled)
    if before and (installed is None or not installed.value.startswith(("0.1.", "0.2."))):
        return
    yield Found(
        at=kind,
        message=f"`{kind.key}` with reentrant checkpoints over a frozen base: no input of a block needs a gradient, "
        "and backward ends with `element 0 of tensors does not require grad`",
        help='pass `gradient_checkpointing_kwargs={"use_reentrant": False}`, '
        "or call `model.enable_input_require_grads()` first",
        notes=[(wraps[0].place, "the base is frozen here"), (reentrant, "reentrant")],
    )
