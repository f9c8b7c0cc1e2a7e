"""Axolotl's `type: sharegpt`, which is `chat_template` since 0.5."""

from collections.abc import Iterator

from trainlint.api import FileView, Found, Scalar, rule, set_value, since


@rule(severity="error", on="file", formats=("axolotl",))
def check(view: FileView) -> Iterator[Found]:
    raised = since(view.versions, "axolotl", "0.5")
    if raised is False:
        return
    for key, entry in view.fragment.keys.items():
        node = entry.value
        if not key.endswith("].type") or not isinstance(node, Scalar) or not isinstance(node.value, str):
            continue
        if node.value.startswith("sharegpt"):
            pin = view.versions.get("axolotl")
            yield Found(
                at=node,
                message=f"`type: {node.raw}` is refused since Axolotl 0.5",
                help="write `type: chat_template`, with `field_messages` and `message_property_mappings` for the names",
                notes=[(pin, "the release")],
                fix=set_value(node, "chat_template"),
                severity=None if raised else "warning",
            )
