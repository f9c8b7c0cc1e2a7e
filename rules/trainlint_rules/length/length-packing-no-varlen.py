"""Packed samples in releases, or with settings, that let them see each other."""

from collections.abc import Iterator

from trainlint.api import Found, RunView, Value, known, rule, said, since

POSITIONS = "0.23"
"""The first TRL whose collator passes positions on whatever the kernel is (sft_trainer.py)."""
MASKED = "4.53"
"""The first transformers that makes a mask of packed samples from positions (masking_utils.py)."""
KERNELS = ("flash_attention", "sdp_attention", "flex_attention", "xformers_attention", "attn_implementation")
"""Any of them and Axolotl keeps packed samples apart."""
PLAIN = ("sdpa", "eager")


@rule(severity="warning", needs=("length.packing",), formats=("trl", "axolotl", "llamafactory"))
def check(view: RunView) -> Iterator[Found]:
    packing = view.run.length.packing
    if packing is None or not packing.value or not packing.written or known(view.run.objective) == "pretrain":
        return
    match view.root.format:
        case "trl":
            yield from _trl(view, packing)
        case "axolotl":
            switched = [key for key in KERNELS if view.root.written(key) not in (None, False)]
            if not switched and known(view.run.kernels) != "unsloth":
                yield Found(
                    at=packing,
                    message=f"`{said(packing)}` without a kernel that keeps packed samples apart: they see each other",
                    help="set `flash_attention: true`, or `sdp_attention: true` where FlashAttention does not run",
                )
        case _:
            if view.root.written("neat_packing") is not True:
                yield Found(
                    at=packing,
                    message=f"`{said(packing)}` without `neat_packing`: samples that share a row see each other",
                    help="set `neat_packing: true`, which masks them from each other",
                )


def _trl(view: RunView, packing: Value[bool]) -> Iterator[Found]:
    kernel, versions = view.run.attention, view.run.versions
    named = view.root.written("attn_implementation")
    if view.root.written("packing_strategy") == "wrapped" or (named is not None and named not in PLAIN):
        return
    if kernel is None or kernel.value not in PLAIN:
        return
    trl, transformers = since(versions, "trl", POSITIONS), since(versions, "transformers", MASKED)
    if trl and transformers is not False:
        return
    certain = trl is False or transformers is False
    yield Found(
        at=packing,
        message=f"`{said(packing)}` with `{kernel.value}` attention: trl before {POSITIONS} and transformers before "
        f"{MASKED} let packed samples see each other",
        help="set `attn_implementation: flash_attention_2`, use later releases, or train without packing",
        notes=[(kernel, "the kernel")],
        severity=None if certain else "info",
    )
