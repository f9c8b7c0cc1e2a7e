"""What `estimate` prints: JSON as its schema says, tables that add up, words for what is open."""

from __future__ import annotations

import io
import json
import re
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from trainlint.cli import main
from trainlint.memory.ledger import Entry
from trainlint.report.color import encodes
from trainlint.report.ledger import GROUPS, compact, group, grouped, open_words
from trainlint.run import Value, build

TRAIN = """\
model_name_or_path: meta-llama/Llama-3.1-8B
per_device_train_batch_size: 1
max_length: 1024
output_dir: runs/a
bf16: true
"""
LORA = TRAIN + "use_peft: true\nload_in_4bit: true\nassistant_only_loss: true\n"


class Command:
    """`trainlint estimate` in a folder with one config."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.capsys = capsys

    def __call__(self, text: str, *arguments: str) -> str:
        (self.folder / "train.yaml").write_text(text)
        main(["estimate", *arguments])
        return self.capsys.readouterr().out


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    monkeypatch.chdir(tmp_path)
    return Command(tmp_path, capsys)


@pytest.mark.parametrize(
    "text",
    [TRAIN, TRAIN.replace("meta-llama/Llama-3.1-8B", "somebody/nobody-knows"), "a: 1\n"],
    ids=["known", "unknown", "none"],
)
@pytest.mark.parametrize("device", [("--device", "RTX 4090"), ()], ids=["device", "no device"])
@pytest.mark.parametrize("further", [(), ("--fit",), ("--variant", "batch.micro=2")], ids=["plain", "fit", "variant"])
def test_estimate_is_what_its_schema_says(
    text: str, device: tuple[str, ...], further: tuple[str, ...], said: Command
) -> None:
    found = json.loads(said(text, "--output-format", "json", *device, *further))
    schema = json.loads(files("trainlint_schemas").joinpath("report.schema.json").read_text("utf-8"))
    jsonschema.validate(found, schema, jsonschema.Draft202012Validator)
    assert len(found["runs"]) == ("model" in text) * (2 if "--variant" in further else 1)


def test_the_table_sums_up_to_the_peak(said: Command) -> None:
    text = said(TRAIN, "--device", "RTX 4090")
    sizes = [float(found[1]) for found in re.finditer(r"^  \S.*?\s(\d+\.\d{3})(?: |$)", text, re.MULTILINE)]
    assert sum(sizes[:-1]) == pytest.approx(sizes[-1], abs=0.01)
    assert re.search(r"^  \d+ small entries", text, re.MULTILINE)


def test_json_has_every_entry_and_groups_that_sum_up_to_the_peak(said: Command) -> None:
    (run,) = json.loads(said(TRAIN, "--output-format", "json"))["runs"]
    assert sum(run["groups"].values()) == sum(entry["bytes"] for entry in run["ledger"]) == run["allocated"]["likely"]
    assert min(entry["bytes"] for entry in run["ledger"]) < run["allocated"]["likely"] / 1000


def test_dtypes_are_those_that_are_held(said: Command) -> None:
    (run,) = json.loads(said(LORA, "--output-format", "json"))["runs"]
    dtypes = {entry["entry"]: entry["dtype"] for entry in run["ledger"]}
    assert dtypes["quantized weights"] == "nf4"
    (run,) = json.loads(said(TRAIN + "optim: adamw_bnb_8bit\n", "--output-format", "json"))["runs"]
    dtypes = {entry["entry"]: entry["dtype"] for entry in run["ledger"]}
    assert dtypes["optimizer state"] == "uint8"


def test_bars_are_drawn_in_what_the_terminal_has(said: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "█" in said(TRAIN, "--device", "RTX 4090")
    monkeypatch.setattr("trainlint.report.color.encodes", lambda stream, character: False)
    text = said(TRAIN, "--device", "RTX 4090")
    assert "█" not in text
    assert re.search(r"the device +24\.0 GiB  #+", text)


def test_an_encoding_has_a_character_or_not() -> None:
    assert encodes(io.TextIOWrapper(io.BytesIO(), "utf-8"), "█")
    assert not encodes(io.TextIOWrapper(io.BytesIO(), "ascii"), "█")


def test_nothing_is_searched_where_layers_are_spread(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = "trainlint: run\nmodel: meta-llama/Llama-3.1-8B\nprecision: {weights: bfloat16}\nmethod: full\n"
    run += "batch: {micro: 1}\nlength: {max: 512}\noptimizer: adamw_torch\nparallel: {tensor: 2}\ndevice: RTX 4090\n"
    (tmp_path / "run.yaml").write_text(run)
    main(["estimate", "--fit", str(tmp_path / "run.yaml")])
    assert "nothing is searched where a device holds a part" in capsys.readouterr().out


def test_what_is_open_is_said_with_what_would_narrow_it(said: Command) -> None:
    assert "no device is named: `--device`" in said(TRAIN)
    run = build("a.yaml", "mlx-lm", (), {"batch.micro": Value(1)})
    assert open_words(run, "batch.micro").endswith("write `batch_size`")
    words = open_words(run, "optimizer.name: a (torch <2), b (torch >=2)")
    assert words.startswith("`optimizer.name`, a (torch <2) or b (torch >=2): pin torch in requirements.txt")
    assert open_words(run, "sharding.kind: none (one device), fsdp2 (more)") == (
        "`sharding.kind`, none (one device) or fsdp2 (more)"
    )
    assert open_words(run, "adapter.targets: ('a',) (x) or ('b', 'c') (y)").startswith(
        "`adapter.targets`, a (x) or b, c (y)"
    )
    assert open_words(run, "how device_map spreads the blocks") == "how device_map spreads the blocks"


def test_a_fit_is_in_the_users_keys(said: Command) -> None:
    train = TRAIN + "dtype: bfloat16\nassistant_only_loss: true\n"
    (run,) = json.loads(said(train, "--fit", "--device", "RTX 4090", "--output-format", "json"))["runs"]
    assert run["verdict"] == "exceeds"
    first = run["fit"][0]
    assert first["verdict"] in ("fits", "tight")
    assert "use_peft" in first["changes"]
    assert not first["keeps_training"]
    assert run["frees_most"]["bytes"] > 0
    text = said(train, "--fit", "--device", "RTX 4090")
    assert "what would fit" in text
    assert "    use_peft: true" in text
    assert "train LoRA adapters" in said(TRAIN, "--fit", "--device", "RTX 4090")


def test_nothing_is_searched_for_what_fits_or_has_no_device(said: Command) -> None:
    assert "it fits as it is" in said(LORA, "--fit", "--device", "H100")
    assert "what would fit: no device is named" in said(LORA, "--fit")


def test_columns_stand_for_variants(said: Command) -> None:
    arguments = (
        "--device",
        "RTX 4090",
        "--variant",
        "length.max=128,batch.accumulation=4",
        "--variant",
        "method=qlora",
    )
    text = said(TRAIN, *arguments)
    assert text.splitlines()[1].endswith("with length.max=128, batch.accumulation=4")
    rows = {line.split("  ")[1]: line.split() for line in text.splitlines()[3:]}
    assert rows["weights"][1] == rows["weights"][2] != rows["weights"][3]
    assert rows["verdict"][1:3] == ["exceeds", "exceeds"]
    assert rows["verdict"][3] in ("fits", "tight")
    assert rows["GiB at the peak"][-3:] == ["A", "B", "C"]


@pytest.mark.parametrize(
    ("count", "words"), [(6_979_321_856, "6.98 B"), (41_943_040, "41.9 M"), (525_336_576, "525 M"), (512, "512")]
)
def test_counts_are_said_as_people_read_them(count: int, words: str) -> None:
    assert compact(count) == words


@pytest.mark.parametrize(
    ("what", "of"),
    [
        ("quantized weights", "weights"),
        ("weight shards", "weights"),
        ("reduce buckets", "gradients"),
        ("master weights", "optimizer state"),
        ("residual stream", "activations"),
        ("gathered logits", "logits"),
        ("inputs", "other"),
    ],
)
def test_every_entry_has_its_group(what: str, of: str) -> None:
    assert group(what) == of
    assert tuple(grouped([Entry(what, "float32", 1, 4, ("forward",))])) == GROUPS
