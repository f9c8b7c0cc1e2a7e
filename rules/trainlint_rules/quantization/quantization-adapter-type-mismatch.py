"""Axolotl's adapter and the bits of the base do not go together."""

from collections.abc import Iterator

from trainlint.api import Entry, Found, RunView, rule, said

OTHERS = ("model_quantization_config", "peft", "nf4_backend", "merge_lora")
"""Keys by which something else than bitsandbytes packs the weights, or nothing is trained."""


@rule(severity="warning", formats=("axolotl",))
def check(view: RunView) -> Iterator[Found]:
    root = view.root
    adapter, four, eight = (root.entry(key) for key in ("adapter", "load_in_4bit", "load_in_8bit"))
    if adapter is None or root.written("gptq") is True or any(root.entry(key) is not None for key in OTHERS):
        return
    kind, bits = root.written("adapter"), root.written("load_in_4bit") is True
    if kind == "lora" and four is not None and bits:
        yield _found(adapter, four, "axolotl loads 4 bits under `adapter: qlora` alone", "set `adapter: qlora`")
    elif kind == "qlora" and eight is not None and root.written("load_in_8bit") is True:
        yield _found(
            adapter, eight, "axolotl takes 4 bits alone for qlora, and stops", "set `load_in_4bit: true` alone"
        )
    elif kind == "qlora" and not bits:
        help_ = "set `load_in_4bit: true`, or `adapter: lora` over a base in 16 bit"
        yield _found(adapter, four, "axolotl requires it to be true for qlora, and stops", help_)


def _found(adapter: Entry, bits: Entry | None, outcome: str, help_: str) -> Found:
    beside = f"`{said(bits)}`" if bits is not None else "no `load_in_4bit`"
    return Found(
        at=adapter,
        message=f"`{said(adapter)}` and {beside}: {outcome}",
        help=help_,
        notes=[(bits, "the bits")],
        severity="error" if outcome.endswith("stops") else None,
    )
