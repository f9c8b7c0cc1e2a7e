"""torchtitan jobs: which documents are one, and the run they give."""

from __future__ import annotations

import pytest

from trainlint.documents import Document, from_text
from trainlint.facts import models
from trainlint.formats import Draft
from trainlint.formats.reading import schema
from trainlint.formats.torchtitan import FORMAT
from trainlint.run import Value, build

JOB = """
[job]
dump_folder = "./outputs"
[model]
name = "llama3"
flavor = "8B"
[optimizer]
name = "AdamW"
lr = 3e-4
[training]
local_batch_size = 2
seq_len = 8192
max_norm = 1.0
steps = 1000
dataset = "c4"
[parallelism]
data_parallel_replicate_degree = 1
data_parallel_shard_degree = -1
tensor_parallel_degree = 2
[activation_checkpoint]
mode = "selective"
selective_ac_option = "op"
"""


def document(text: str, syntax: str = "toml") -> Document:
    return from_text("job.toml", text, "toml" if syntax == "toml" else "yaml")


def completed(text: str, **known: object) -> Draft:
    """The draft of a job alone; `known` are values from elsewhere, `__` for the dot."""
    doc = document(text)
    fragment = FORMAT.read(doc, doc.roots[0])
    given: dict[str, Value[object]] = {path.replace("__", "."): Value(value) for path, value in known.items()}
    draft = Draft([fragment], {**fragment.values, **given})
    FORMAT.complete(draft)
    build("job.toml", FORMAT.name, (), draft.values, draft.possible)
    return draft


def test_float32_states_and_bfloat16_compute_over_all_devices() -> None:
    draft = completed(JOB, device__count=8)
    expected = {
        "framework": "torchtitan",
        "model.id": "meta-llama/Llama-3.1-8B",
        "method": "full",
        "objective": "pretrain",
        "precision.weights": "float32",
        "precision.compute": "bfloat16",
        "precision.autocast": False,
        "sharding.kind": "fsdp2",
        "sharding.reduce_dtype": "float32",
        "sharding.reshard_after_forward": True,
        "parallel.data": 4,
        "parallel.tensor": 2,
        "parallel.world": 8,
        "batch.micro": 2,
        "batch.accumulation": 1,
        "length.max": 8192,
        "length.packing": True,
        "checkpointing.kind": "selective",
        "optimizer.name": "adamw_torch_fused",
        "clip": 1.0,
        "loss": "full",
    }
    assert {path: draft.get(path) for path in expected} == expected


def test_the_number_of_devices_may_stay_open() -> None:
    draft = completed(JOB)
    assert draft.get("sharding.kind") == "fsdp2"
    assert not draft.has("parallel.data")


def test_one_data_rank_autocasts_and_tensor_parallel_alone_does_not() -> None:
    alone = completed(
        JOB.replace("shard_degree = -1", "shard_degree = 1").replace("parallel_degree = 2", "parallel_degree = 1")
    )
    assert (alone.get("sharding.kind"), alone.get("precision.autocast")) == ("none", True)
    tensor = completed(JOB.replace("shard_degree = -1", "shard_degree = 1"))
    assert (tensor.get("precision.autocast"), tensor.get("precision.compute")) == (False, "float32")


def test_every_second_block_is_recomputed() -> None:
    draft = completed(JOB.replace('"op"', '"2"'))
    assert (draft.get("checkpointing.kind"), draft.get("checkpointing.every")) == ("full", 2)


def test_accumulation_follows_from_the_global_batch() -> None:
    text = JOB.replace("local_batch_size = 2", "local_batch_size = 2\nglobal_batch_size = 64")
    assert completed(text, device__count=8).get("batch.accumulation") == 8
    assert not completed(text).has("batch.accumulation")


def test_float8_needs_its_converter() -> None:
    tables = "[quantize.linear.float8]\nenable_fsdp_float8_all_gather = false\n"
    assert not completed(JOB + tables).has("precision.fp8")
    assert (
        completed(JOB.replace('flavor = "8B"', 'flavor = "8B"\nconverters = ["float8"]')).get("precision.fp8") is True
    )


def test_old_jobs_keep_degrees_under_training() -> None:
    text = JOB.split("[parallelism]")[0] + "data_parallel_degree = 4\ntensor_parallel_degree = 1\n"
    draft = completed(text.replace("[job]", "[metrics]\nlog_freq = 10\n[job]"))
    assert (draft.get("parallel.data"), draft.get("sharding.kind")) == (4, "fsdp2")


def test_flavors_name_models() -> None:
    for name, flavors in schema("torchtitan")["x-flavors"]["models"].items():
        for flavor, model in flavors.items():
            if flavor != "17bx128e":
                assert models.find(model) is not None, (name, flavor)


@pytest.mark.parametrize(
    ("text", "syntax"),
    [
        ('[project]\nname = "x"\n[tool.training]\nsteps = 1\n', "toml"),
        ('[model]\nname = "x"\n[training]\nepochs = 2\n', "toml"),
        ("model: {flavor: 8B}\ntraining: {seq_len: 1}\njob: {}\n", "yaml"),
    ],
)
def test_look_alikes_are_left_alone(text: str, syntax: str) -> None:
    doc = document(text, syntax)
    assert FORMAT.recognise(doc, doc.roots[0]) < 40


def test_recognised() -> None:
    doc = document(JOB)
    assert FORMAT.recognise(doc, doc.roots[0]) >= 80
