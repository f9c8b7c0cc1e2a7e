"""A key that the framework does not have: misspelt, from another release, or never known."""

from collections.abc import Iterator

from trainlint.api import FileView, Found, Severity, UnknownKey, Value, rename_key, rule, unknown_keys

DOES = {"refused": ": the loader refuses it", "ignored": ": it is ignored", "open": ""}


@rule(severity="warning", on="file")
def check(view: FileView) -> Iterator[Found]:
    for unknown in unknown_keys(view.fragment, view.versions):
        pin = view.versions.get(unknown.framework)
        severity: Severity = "warning"
        if unknown.consequence == "refused" and (pin is not None or unknown.kind == "misspelt"):
            severity = "error"
        elif unknown.consequence != "refused" and unknown.kind == "never":
            severity = "info"
        close = unknown.suggestion
        yield Found(
            at=unknown.entry.key,
            message=_said(unknown, pin) + DOES[unknown.consequence],
            help=f"write `{close}`" if close else "remove it, or pin a release that has it",
            notes=[(pin, "the release")],
            fix=rename_key(unknown.entry, close, "unsafe") if close else None,
            severity=severity,
        )


def _said(unknown: UnknownKey, pin: Value[str] | None) -> str:
    release = f"{unknown.framework} {pin.value}" if pin is not None else unknown.framework
    match unknown.kind:
        case "misspelt":
            return f"no key is named `{unknown.dotted}`, did you mean `{unknown.suggestion}`"
        case "removed" if unknown.key is not None:
            return f"`{unknown.dotted}` is gone since {unknown.framework} {unknown.key.removed_in}, this is {release}"
        case "later" if unknown.key is not None:
            since = unknown.key.first_seen or "a later release"
            return f"`{unknown.dotted}` comes with {unknown.framework} {since}, this is {release}"
        case _:
            return f"`{unknown.dotted}` is no key of {release}"
