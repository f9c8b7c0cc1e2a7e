"""A loss scaler around bf16 autocast, which has float32's range and needs none."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, amp, rule


@rule(severity="warning")
def check(view: RunView) -> Iterator[Found]:
    for fragment in view.fragments:
        calls = fragment.facts.get("amp")
        if not isinstance(calls, amp.Amp):
            continue
        autocasts = [call for call in calls.of("autocast") if call.enabled is not False]
        if not autocasts or any(_short(call.dtype) != "bfloat16" for call in autocasts):
            continue
        used = {call.owner for call in calls.of("scaled-backward")}
        for scaler in calls.of("scaler"):
            if scaler.enabled and not scaler.conditional and used:
                yield Found(
                    at=scaler.place,
                    message="the loss is scaled although autocast runs in bf16, whose range is float32's",
                    help="drop the scaler, or build it with `enabled=(dtype == torch.float16)`",
                    notes=[(autocasts[0].place, "autocast to bf16")],
                )


def _short(dtype: str | None) -> str:
    return (dtype or "").rpartition(".")[2]
