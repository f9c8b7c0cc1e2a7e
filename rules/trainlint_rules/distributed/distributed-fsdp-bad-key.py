"""A key of an FSDP block that its release or its FSDP version does not read."""

from collections.abc import Iterator

from trainlint.api import FileView, Found, Scalar, Severity, rename_key, rule, since

OLD, NEW = "backward_prefetch_policy", "backward_prefetch"
FIRST = {
    "sharding_strategy": "reshard_after_forward",
    "backward_prefetch": "",
    "forward_prefetch": "",
    "sync_module_states": "",
    "use_orig_params": "",
}
"""Keys of FSDP1 alone → what FSDP2 has in its place."""


@rule(
    severity="warning",
    on="file",
    formats=("accelerate", "hf-trainer", "trl", "axolotl"),
    outranks=("schema-unknown-key",),
)
def check(view: FileView) -> Iterator[Found]:
    fragment = view.fragment
    prefix = "fsdp_config." if fragment.entry("fsdp_config") is not None else ""
    if prefix == "" and (fragment.format != "accelerate" or fragment.section != "fsdp_config"):
        return
    if fragment.format == "accelerate" and prefix and str(fragment.written("distributed_type")).upper() != "FSDP":
        return
    version = next((v for key in ("fsdp_version", "version") if (v := fragment.written(prefix + key))), None)
    second = str(version or fragment.written("fsdp_version")) == "2"
    known = {key.removeprefix(prefix): entry for key, entry in fragment.keys.items() if key.startswith(prefix)}
    for name, entry in known.items():
        bare = name.removeprefix("fsdp_")
        start = "fsdp_" if name.startswith("fsdp_") else ""
        if bare == OLD and fragment.format in ("accelerate", "hf-trainer", "trl"):
            gone = fragment.format != "accelerate" or since(view.versions, "accelerate", "1.0.1")
            if since(view.versions, "accelerate", "0.26") is False:
                continue
            severity: Severity = "warning" if gone else "info"
            yield Found(
                at=entry.key,
                message=f"`{name}` is the old name: accelerate reads `{start}{NEW}` since 0.26, and it alone since 1.0",
                help=f"write `{start}{NEW}`",
                fix=None if start + NEW in known else rename_key(entry, start + NEW),
                severity=severity,
            )
        elif second and bare in FIRST and isinstance(entry.value, Scalar) and entry.value.value is not None:
            other = f"write `{start}{FIRST[bare]}`" if FIRST[bare] else "take it out"
            yield Found(
                at=entry.key,
                message=f"`{name}` is a key of FSDP1, version 2 does not read it",
                help=other,
                severity="info",
            )
