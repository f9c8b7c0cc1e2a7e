"""Results that the report tests print."""

from __future__ import annotations

from trainlint.documents import Place
from trainlint.result import CheckedFile, CheckedRun, NotJudged, Result
from trainlint.rule import Edit, Finding, Fix, Note, Rule

SFT = "model: m\nper_device_train_batch_size: 8\nfp16: true  # über\n"
PAGE = "# precision-both\n\nOne `float16`, one\n`bfloat16`.\n\n```yaml file=a.yaml\nfp16: true\n```\n"

RULES = (
    Rule("memory-exceeds-device", "memory", "error", lambda view: ()),
    Rule("precision-both", "precision", "warning", lambda view: (), page=lambda: PAGE),
)

FINDINGS = (
    Finding(
        "memory-exceeds-device",
        "error",
        "needs 31.2 GiB at the optimizer step, the RTX 4090 has 24.0 GiB",
        Place("configs/sft.yaml", 2, 30, 2, 31),
        help="lower `max_length` to 1024 (22.6 GiB)",
        related=(Note(Place("ds, 50%.json", 3, 5, 3, 9), "ZeRO shards nothing: one device"),),
    ),
    Finding(
        "precision-both",
        "warning",
        "`fp16: true` beside `bf16: true`",
        Place("configs/sft.yaml", 3, 7, 3, 11),
        fix=Fix((Edit(Place("configs/sft.yaml", 3, 7, 3, 11), "false"),), "safe", "turn fp16 off"),
    ),
    Finding("repro-no-seed", "info", "no seed", Place("configs/sft.yaml", 1, 1, 3, 5)),
)

RESULT = Result(
    FINDINGS,
    (
        CheckedFile("configs/sft.yaml", "hf-trainer"),
        CheckedFile("ds, 50%.json", "deepspeed"),
        CheckedFile("x.py", None),
    ),
    (CheckedRun("configs/sft.yaml", ("configs/sft.yaml", "ds, 50%.json")),),
    (NotJudged("length-too-long", "configs/sft.yaml", ("model.shape.positions",)),),
    sources={"configs/sft.yaml": SFT},
)
