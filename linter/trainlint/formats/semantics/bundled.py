"""DeepSpeed configs that frameworks ship: what a path to one says where the file itself is not at hand.

Sources: axolotl deepspeed_configs/, LLaMA-Factory examples/deepspeed/, each at the releases up to axolotl 0.19 and
LLaMA-Factory 0.9.5.
"""

from __future__ import annotations

import re

from trainlint.formats.format import Draft

_AXOLOTL = re.compile(r"zero([123])(?:_torch_compile|_bf16)?(?:_(cpuoffload_all|cpuoffload_params))?\.json")
_LLAMAFACTORY = re.compile(r"ds_z([023])(?:_(offload))?(?:_(?:fp8|autotp))?_config\.json")
_OPTIMIZER, _PARAMETERS = ("cpuoffload_all", "offload"), ("cpuoffload_all", "cpuoffload_params", "offload")


def shipped_deepspeed(draft: Draft, framework: str) -> None:
    """`sharding.*` for a DeepSpeed config that is named but did not join: by the name of one that `framework` ships.

    Of another file only that some ZeRO stage runs is known.
    """
    if draft.has("sharding.kind") or draft.fragment("deepspeed") is not None:
        return
    root = draft.fragments[0]
    path = next((reference.text for reference in root.references if reference.role == "deepspeed"), None)
    if path is None:
        return
    name = path.rpartition("/")[2]
    found = (_AXOLOTL if framework == "axolotl" else _LLAMAFACTORY).fullmatch(name)
    if found is None:
        stages = ((f"zero{stage}", f"`{name}` was not read") for stage in (1, 2, 3))
        draft.either("sharding.kind", *stages, origin="derived")
        return
    note, stage, offload = f"the `{name}` that {framework} ships", found[1], found[2]
    draft.derive("sharding.kind", f"zero{stage}", note)
    hidden = draft.get("model.shape.hidden")
    if stage == "3" and isinstance(hidden, int):
        draft.derive("sharding.reduce_bucket", hidden * hidden, f"{note}: `auto`", "element")
        draft.derive("sharding.prefetch_bucket", int(0.9 * hidden * hidden), f"{note}: `auto`", "element")
    if offload in _OPTIMIZER:
        draft.derive("sharding.offload_optimizer", "cpu", note)
    if offload in _PARAMETERS and stage == "3":
        draft.derive("sharding.offload_parameters", "cpu", note)
