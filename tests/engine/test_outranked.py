"""Where two rules speak of one mistake, the more specific one is heard."""

from __future__ import annotations

from pathlib import Path

from trainlint.engine import check_folder

LOST = """\
compute_environment: LOCAL_MACHINE
distributed_type: FSDP
fsdp_config:
fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
fsdp_sharding_strategy: FULL_SHARD
mixed_precision: bf16
num_machines: 1
num_processes: 2
"""


def test_a_finding_speaks_for_its_notes_too(tmp_path: Path) -> None:
    (tmp_path / "accelerate.yaml").write_text(LOST, "utf-8")
    assert [finding.rule for finding in check_folder(tmp_path).findings] == ["schema-lost-indent"]


def test_a_renamed_key_is_not_unknown_as_well(tmp_path: Path) -> None:
    text = "model_name_or_path: gpt2\noutput_dir: out\nnum_train_epochs: 1\nno_cuda: true\nwarmup_ratio: 0.1\n"
    (tmp_path / "train.yaml").write_text(text, "utf-8")
    (tmp_path / "requirements.txt").write_text("transformers==5.24.0\n", "utf-8")
    rules = [finding.rule for finding in check_folder(tmp_path).findings]
    assert rules == ["schema-tf5-removed", "schedule-warmup-ratio-gone"]
