"""Hydra's defaults lists: what is merged beneath what, and where it stands."""

from __future__ import annotations

from pathlib import Path

from trainlint.documents import Document, Mapping, from_text, plain
from trainlint.formats.semantics.hydra import Composed, composed


def made(folder: Path, text: str) -> Composed:
    document: Document = from_text(str(folder / "config.yaml"), text, "yaml")
    root = document.roots[0]
    assert isinstance(root, Mapping)
    return composed(document, root)


def put(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_groups_stand_under_their_package(tmp_path: Path) -> None:
    put(tmp_path, "db/mysql.yaml", "driver: mysql\nport: 1\n")
    put(tmp_path, "opt/adam.yaml", "# @package _global_\noptimizer: {lr: 1}\n")
    found = made(tmp_path, "defaults: [{db: mysql}, {opt: adam}, {db@copy.of: mysql}, _self_]\ndb: {port: 2}\n")
    assert plain(found.root) == {
        "db": {"driver": "mysql", "port": 2},
        "optimizer": {"lr": 1},
        "copy": {"of": {"driver": "mysql", "port": 1}},
    }
    assert not found.missing
    assert {Path(one.text).name for one in found.references} == {"mysql.yaml", "adam.yaml"}


def test_places_stay_in_their_files(tmp_path: Path) -> None:
    put(tmp_path, "db/mysql.yaml", "driver: mysql\nport: 1\n")
    found = made(tmp_path, "defaults: [{db: mysql}, _self_]\n")
    node = found.root.find("db.port")
    assert node is not None
    assert (Path(node.place.file).name, node.place.line) == ("mysql.yaml", 2)


def test_the_order_of_the_list_decides(tmp_path: Path) -> None:
    put(tmp_path, "a.yaml", "x: a\ny: a\n")
    put(tmp_path, "b.yaml", "x: b\n")
    assert plain(made(tmp_path, "defaults: [a, b, _self_]\n").root) == {"x": "b", "y": "a"}
    assert plain(made(tmp_path, "defaults: [_self_, a]\nx: own\n").root) == {"x": "a", "y": "a"}
    assert plain(made(tmp_path, "defaults: [a]\nx: own\n").root) == {"x": "own", "y": "a"}  # since Hydra 1.1


def test_lists_are_nested(tmp_path: Path) -> None:
    put(tmp_path, "actor/dp.yaml", "defaults: [../engine@cfg: fsdp, base, _self_]\nkind: dp\n")
    put(tmp_path, "actor/base.yaml", "kind: base\nsize: 4\n")
    put(tmp_path, "engine/fsdp.yaml", "dtype: bf16\n")
    found = made(tmp_path, "defaults: [{actor@run.actor: dp}, _self_]\n")
    assert plain(found.root) == {"run": {"actor": {"cfg": {"dtype": "bf16"}, "kind": "dp", "size": 4}}}


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    found = made(tmp_path, "defaults: [base, {optional db: mysql}, {override hydra/job: x}, {y: null}, _self_]\nx: 1\n")
    assert plain(found.root) == {"x": 1}
    assert found.missing == ["base", "db/mysql"]


def test_a_circle_ends(tmp_path: Path) -> None:
    put(tmp_path, "a.yaml", "defaults: [a, _self_]\nx: 1\n")
    assert plain(made(tmp_path, "defaults: [a]\n").root) == {"x": 1}


def test_without_a_list_nothing_changes(tmp_path: Path) -> None:
    assert plain(made(tmp_path, "x: 1\n").root) == {"x": 1}
