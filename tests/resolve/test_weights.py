from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainlint.resolve.weights import HEADER_LIMIT, Weights, weights

from .runs import Folder, folder, value

__all__ = ["folder"]

SIZES = {"F32": 4, "BF16": 2, "F16": 2, "U8": 1, "I64": 8, "F8_E4M3": 1}


def safetensors(*tensors: tuple[str, tuple[int, ...]]) -> bytes:
    """A file with tensors of some types and shapes; their data are left out, as nobody reads them."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    at = 0
    for number, (kind, shape) in enumerate(tensors):
        size = SIZES[kind]
        for side in shape:
            size *= side
        header[f"t{number}"] = {"dtype": kind, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text


def test_a_single_file(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(safetensors(("BF16", (1000, 8)), ("F32", (16,)), ("BF16", ())))
    assert weights(tmp_path) == Weights(16066, 8017, "bfloat16", "model.safetensors")


def test_shards_that_are_there_are_counted(tmp_path: Path) -> None:
    index = {
        "metadata": {"total_size": 99.0, "total_parameters": 7},
        "weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors"},
    }
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert weights(tmp_path) == Weights(99, 7, None, "model.safetensors.index.json")
    (tmp_path / "m-1.safetensors").write_bytes(safetensors(("F16", (4, 4))))
    (tmp_path / "m-2.safetensors").write_bytes(safetensors(("F16", (2,)), ("F8_E4M3", (1,))))
    assert weights(tmp_path) == Weights(37, 19, "float16", "the headers of 2 safetensors files")


def test_packed_weights_are_no_parameters(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(safetensors(("U8", (500,)), ("BF16", (100,))))
    assert weights(tmp_path) == Weights(700, None, None, "model.safetensors")
    (tmp_path / "model.safetensors").write_bytes(safetensors(("I64", (1,)), ("BF16", (5000,))))
    assert weights(tmp_path) == Weights(10008, 5000, "bfloat16", "model.safetensors")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"1234567",
        (HEADER_LIMIT + 1).to_bytes(8, "little"),
        (5).to_bytes(8, "little") + b"{",
        b"\2" + b"\0" * 7 + b"[]",
    ],
)
def test_broken_headers_say_nothing(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "model.safetensors").write_bytes(data)
    assert weights(tmp_path) is None


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"metadata": {"total_size": true}}', '{"metadata": 1, "weight_map": 2}']
)
def test_broken_indexes_say_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "model.safetensors.index.json").write_text(text)
    assert weights(tmp_path) is None


def test_shards_elsewhere_are_not_opened(tmp_path: Path) -> None:
    (tmp_path / "up.safetensors").write_bytes(safetensors(("F16", (4, 4))))
    below = tmp_path / "model"
    below.mkdir()
    index = {"metadata": {"total_size": 9}, "weight_map": {"a": "../up.safetensors"}}
    (below / "model.safetensors.index.json").write_text(json.dumps(index))
    assert weights(below) == Weights(9, None, None, "model.safetensors.index.json")


def test_a_run_takes_dtype_and_count_from_the_file(folder: Folder) -> None:
    folder.file("run.yaml", "trainlint: run\nmodel: {id: model}\n")
    folder.file("model/config.json", '{"model_type": "llama", "hidden_size": 8, "num_hidden_layers": 1}')
    (folder.path / "model" / "model.safetensors").write_bytes(safetensors(("F16", (10, 10))))
    run = folder.run()
    assert value(run, "model.dtype") == "float16"
    assert value(run, "model.parameters") == 100
    assert value(run, "model.checkpoint_bytes") == 200
    assert run.model.parameters is not None
    assert run.model.parameters.note == "model.safetensors"


@pytest.mark.parametrize(
    ("said", "stored"),
    [
        ('"quantization_config": {"quant_method": "gptq", "bits": 4}', "gptq-4bit"),
        ('"quantization_config": {"quant_method": "awq"}', "awq-4bit"),
        ('"quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": true}', "bnb-8bit"),
        ('"quantization_config": {"quant_method": "fp8"}', "fp8"),
        ('"quantization": {"group_size": 64, "bits": 4}', "mlx-4bit"),
        ('"quantization_config": null', None),
    ],
)
def test_configs_say_how_weights_are_stored(folder: Folder, said: str, stored: str | None) -> None:
    folder.file("run.yaml", "trainlint: run\nmodel: {id: model}\n")
    folder.file("model/config.json", f'{{"model_type": "llama", "hidden_size": 8, {said}}}')
    assert value(folder.run(), "model.quantized") == stored
