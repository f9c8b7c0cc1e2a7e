from __future__ import annotations

import os
from pathlib import Path

import pytest

from trainlint.documents import Document, Mapping, Place, Scalar
from trainlint.formats import Fragment, Reference
from trainlint.resolve.join import Joiner, Member, Reason, find_file
from trainlint.resolve.precedence import merged
from trainlint.run import Value

from .runs import Folder, folder, value

__all__ = ["folder"]

TRAINER = """\
output_dir: out
per_device_train_batch_size: 8
gradient_accumulation_steps: 2
learning_rate: 1.0e-5
num_train_epochs: 3
warmup_ratio: 0.03
"""
DEEPSPEED = (
    '{"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": "auto"}'
)
ACCELERATE = (
    "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nmixed_precision: bf16\nnum_processes: 4\n"
)


def test_a_run_takes_in_what_it_names(folder: Folder) -> None:
    folder.file("train.yaml", TRAINER + "deepspeed: ds/zero2.json\n")
    folder.file("ds/zero2.json", DEEPSPEED)
    assert folder.members() == [("train.yaml", "ds/zero2.json")]
    run = folder.run()
    assert (run.root, run.root_format) == ("train.yaml", "hf-trainer")
    assert value(run, "sharding.kind") == "zero2"


def test_what_is_named_is_read_though_nobody_asked(folder: Folder) -> None:
    folder.file("train.yaml", TRAINER + "deepspeed: ds/zero2.json\n")
    folder.file("ds/zero2.json", DEEPSPEED)
    assert folder.members("train.yaml") == [("train.yaml", "ds/zero2.json")]


def test_what_nothing_names_stands_alone(folder: Folder) -> None:
    folder.file("train.yaml", TRAINER)
    folder.file("ds/zero2.json", DEEPSPEED)
    assert sorted(folder.members()) == [("ds/zero2.json",), ("train.yaml",)]


def test_several_runs_share_a_file(folder: Folder) -> None:
    folder.file("a.yaml", TRAINER + "deepspeed: zero2.json\n")
    folder.file("b.yaml", TRAINER + "deepspeed: ./zero2.json\n")
    folder.file("zero2.json", DEEPSPEED)
    assert sorted(folder.members()) == [("a.yaml", "zero2.json"), ("b.yaml", "zero2.json")]


def test_an_accelerate_config_joins_the_only_root_beside_it(folder: Folder) -> None:
    folder.file("train.yaml", TRAINER)
    folder.file("accelerate.yaml", ACCELERATE)
    assert folder.members() == [("train.yaml", "accelerate.yaml")]
    assert value(folder.run(), "parallel.world") == 4


def test_of_two_it_is_not_known_which(folder: Folder) -> None:
    folder.file("train.yaml", TRAINER)
    folder.file("one.yaml", ACCELERATE)
    folder.file("two.yaml", ACCELERATE)
    assert sorted(folder.members()) == [("one.yaml",), ("train.yaml",), ("two.yaml",)]
    (folder.path / "two.yaml").unlink()
    folder.file("other.yaml", TRAINER)
    assert sorted(folder.members()) == [("one.yaml",), ("other.yaml",), ("train.yaml",)]


def test_names_that_lead_nowhere(folder: Folder) -> None:
    for name in ("gone.json", "http://x.org/a.json", "$DS_CONFIG", "~/ds.json", "x" * 500, "auto", "''", "'..'", "/"):
        folder.file("train.yaml", TRAINER + f"deepspeed: {name}\n")
        assert folder.members() == [("train.yaml",)], name


def test_files_that_name_each_other(folder: Folder) -> None:
    folder.file("a.yaml", TRAINER + "deepspeed: a.yaml\n")
    assert folder.members() == [("a.yaml",)]


def test_links_in_a_circle(folder: Folder) -> None:
    os.symlink("loop.json", folder.path / "loop.json")
    folder.file("train.yaml", TRAINER + "deepspeed: loop.json\n")
    assert folder.members() == [("train.yaml",)]


def test_files_are_found_from_the_folder_up_to_the_repository(tmp_path: Path) -> None:
    for name in ("top.json", "repo/.git/HEAD", "repo/ds.json", "repo/a/b/c/d/own.json", "repo/model/config.json"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    origin = tmp_path / "repo" / "a" / "b" / "c" / "d" / "train.yaml"
    assert find_file(origin, "own.json") == origin.with_name("own.json")
    assert find_file(origin, "./own.json") == origin.with_name("own.json")
    assert find_file(origin, "../d/own.json") == origin.with_name("own.json")
    assert find_file(origin, "ds.json") == tmp_path / "repo" / "ds.json"
    assert find_file(origin, "top.json") is None
    assert find_file(origin, str(tmp_path / "top.json")) == tmp_path / "top.json"
    assert find_file(origin, "model", ("config.json",)) == tmp_path / "repo" / "model" / "config.json"
    assert find_file(origin, "model/config.json", ("config.json",)) == tmp_path / "repo" / "model" / "config.json"
    for text in ("", "model", "a\nb", "\0", "x" * 299):
        assert find_file(origin, text) is None


def fragment(format_name: str, **values: object) -> Fragment:
    document = Document(f"{format_name}.yaml", "yaml")
    made = Fragment(format_name, document, Mapping((), Place(document.file)))
    for name, found in values.items():
        path = name.replace("__", ".")
        made.values[path] = Value(found, key=name, place=Place(document.file), file_format=format_name)
    return made


def test_disagreement_is_kept_with_the_winner() -> None:
    root = fragment("hf-trainer", batch__micro=8, seed=1)
    other = fragment("deepspeed", batch__micro=4, seed=1, clip=1.0)
    values = merged([root, other])
    assert values["batch.micro"].value == 8
    assert [(loser.value, loser.file_format) for loser in values["batch.micro"].losers] == [(4, "deepspeed")]
    assert values["seed"].losers == ()
    assert (values["clip"].value, values["clip"].losers) == (1.0, ())


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2)])
def test_precedence_does_not_depend_on_the_order(order: tuple[int, ...]) -> None:
    root = fragment("trl", seed=1)
    launcher = fragment("shell-launcher", seed=2)
    launcher.starts = True
    others = [
        launcher,
        fragment("accelerate", seed=3),
        fragment("deepspeed", seed=4),
        fragment("someone-elses", seed=5),
    ]
    found = merged([root, *(others[at] for at in order)])["seed"]
    assert found.value == 2
    assert [loser.value for loser in found.losers] == [1, 3, 4, 5]


def test_a_trainer_and_its_engine(folder: Folder) -> None:
    folder.file("train.yaml", TRAINER + "deepspeed: zero2.json\n")
    folder.file("zero2.json", DEEPSPEED)
    micro = folder.run().batch.micro
    assert micro is not None
    assert micro.value == 8
    assert [(loser.value, loser.key) for loser in micro.losers] == [(4, "train_micro_batch_size_per_gpu")]
    accumulation = folder.run().batch.accumulation
    assert accumulation is not None
    assert (accumulation.value, accumulation.losers) == (2, ())


def test_a_script_with_a_launcher(folder: Folder) -> None:
    folder.file("run.sh", "accelerate launch --num_processes 2 train.py --config train.yaml\n")
    folder.file("train.py", "from trl import SFTConfig, SFTTrainer, TrlParser\n")
    folder.file("train.yaml", TRAINER)
    runs = [found.run for found in folder.resolved() if "train.yaml" in found.run.files]
    assert len(runs) == 1
    assert runs[0].root == "train.yaml"
    assert value(runs[0], "parallel.world") == 2


def test_joining_opens_each_file_once() -> None:
    opened: list[Path] = []

    def opener(path: Path) -> list[Fragment]:
        opened.append(path)
        return []

    root = fragment("trl")
    root.launches = True
    scalar = Scalar(__file__, __file__, Place("trl.yaml"))
    root.references += [Reference("deepspeed", __file__, scalar.place), Reference("config", __file__, scalar.place)]
    assert Joiner([root], opener).runs() == [[Member(root, Reason("root"))]]
    assert opened == [Path(__file__).resolve()]
