"""Autocast is entered for another kind of device than the one that trains."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, amp, devices, known, rule

KINDS = {"nvidia": "cuda", "amd": "cuda", "apple": "mps"}
"""What torch calls the devices of a vendor."""


@rule(severity="warning", needs=("device.name",), formats=("python-script",))
def check(view: RunView) -> Iterator[Found]:
    device = view.run.device
    name = device.name.value if device.name is not None else ""
    found = devices.find(name)
    kind = KINDS.get(found.vendor.lower()) if found is not None else None
    calls = view.root.facts.get("amp")
    if kind is None or not isinstance(calls, amp.Amp) or known(device.cpu_only):
        return
    entered = calls.of("autocast")
    if any(event.device is None or event.device == kind for event in entered):
        return  # one that only a run decides, or one for each kind of device
    for event in entered:
        if event.enabled and not event.conditional and event.device in ("cuda", "mps", "cpu"):
            yield Found(
                at=event.place,
                message=f'autocast for `"{event.device}"`, and the {name} is `"{kind}"`: '
                "its products stay in the dtype of the weights",
                help="pass the type of the device that trains: `torch.autocast(device.type, …)`",
                notes=[(device.name, "the device")],
            )
