"""The maintainers' miner: what it reads of a release's source, and what becomes of the history."""

from __future__ import annotations

import copy
import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from trainlint.facts.versions import version

TOOLS = Path(__file__).parents[2] / "tools"
HISTORY = Path(__file__).parents[2] / "schemas" / "trainlint_schemas" / "history"


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The tool as a module; it stands outside of the package."""
    if not TOOLS.is_dir():
        pytest.skip("the tools are no part of a source distribution")
    monkeypatch.setattr(sys, "path", [str(TOOLS), *sys.path])
    return importlib.import_module("mine_release")


OLD = """
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, Optional
KIB = 1024
class Mode(str, Enum):
    FAST = "fast"
    SLOW = "slow"
@dataclass
class BaseConfig:
    output_dir: str
    lr: float = field(default=1e-4, metadata={"help": "rate"})
    mode: Mode = field(default=Mode.FAST)
    size: Optional[int] = 4 * KIB
    names: list[str] = field(default_factory=list)
    made: int = field(default_factory=compute)
@dataclass
class ToyConfig(BaseConfig):
    kind: Literal["a", "b"] = "a"
    gone: bool = False
"""
NEW = (
    OLD.replace("1e-4", "2e-4")
    .replace('Literal["a", "b"] = "a"', 'Literal["a", "c"] = "a"')
    .replace(
        "    gone: bool = False\n",
        '    fresh: int | None = None\n    old: int = field(default=1, metadata={"help": "Deprecated: no."})\n',
    )
    .replace("output_dir: str\n", "output_dir: str | None = None\n")
    + '@dataclass\nclass NewConfig(ToyConfig):\n    extra: str = "x"\n'
)
NEW = NEW.replace("@dataclass\nclass NewConfig", "\n@dataclass\nclass NewConfig")


def table(tools: Any, *releases: tuple[str, str]) -> dict[str, Any]:
    """A history of a framework that begins with the old source, and further releases merged."""
    mined = tools.package({"toy/config.py": OLD})
    keys = {
        name: {key: tools._fresh(found, "1.0", "1.0") for key, found in mined.fields(name).items()}
        for name in ("BaseConfig", "ToyConfig")
    }
    own = {key: entry for key, entry in keys["ToyConfig"].items() if key not in keys["BaseConfig"]}
    made = {
        "package": "toy",
        "versions": ["1.0"],
        "sections": {
            "BaseConfig": {"first": "1.0", "keys": keys["BaseConfig"]},
            "ToyConfig": {"first": "1.0", "inherits": "BaseConfig", "keys": own},
            "json:top": {"first": "1.0", "keys": {"by_hand": {"types": "int"}}},
        },
    }
    for release, source in releases:
        tools.merge("toy", made, tools.package({"toy/config.py": source}), release)
    return made


def test_what_is_read_of_a_class(tools: Any) -> None:
    keys = table(tools)["sections"]["BaseConfig"]["keys"]
    assert keys == {
        "output_dir": {"types": "str", "required": True},
        "lr": {"types": "float", "default": 1e-4},
        "mode": {"types": "Mode", "default": "fast", "enum": ["fast", "slow"]},
        "size": {"types": "int|null", "default": 4096},
        "names": {"types": "list[str]", "default": []},
        "made": {"types": "int"},
    }
    assert table(tools)["sections"]["ToyConfig"]["keys"]["kind"] == {"types": "str", "default": "a", "enum": ["a", "b"]}


def test_pydantic_models_and_constructors(tools: Any) -> None:
    source = (
        "class M(BaseModel):\n    model_config = {}\n    a: Annotated[int, Field(default=3)]\n"
        "    b: str | None = Field(None)\n"
        "    c: float = Field(...)\n    D: ClassVar[int] = 1\n"
        "class C:\n    def __init__(self, bits: int = 4, skip=None, *, x: bool = True, **kwargs): ...\n"
    )
    mined = tools.package({"m.py": source})
    assert {key: (found.types, found.required) for key, found in mined.fields("M").items()} == {
        "a": (("int",), False),
        "b": (("str", "null"), False),
        "c": (("float",), True),
    }
    assert mined.fields("M")["a"].default == 3
    assert {key: found.default for key, found in mined.fields("C").items() if key != "skip"} == {"bits": 4, "x": True}
    assert mined.fields("C")["skip"].default is tools.COMPUTED


def test_a_release_is_merged(tools: Any) -> None:
    made = table(tools, ("1.1", NEW))
    base, toy = made["sections"]["BaseConfig"], made["sections"]["ToyConfig"]
    assert made["versions"] == ["1.0", "1.1"]
    assert base["keys"]["lr"] == {"types": "float", "defaults": [["1.0", 1e-4], ["1.1", 2e-4]]}
    assert base["keys"]["output_dir"] == {"types": "str|null", "defaults": [["1.0"], ["1.1", None]]}
    assert toy["inherits"] == "BaseConfig"
    assert toy["keys"] == {
        "kind": {"types": "str", "default": "a", "enum": ["a", "c"], "choices": [["1.1", ["c"], ["b"]]]},
        "gone": {"types": "bool", "default": False, "removed": "1.1"},
        "fresh": {"types": "int|null", "default": None, "first": "1.1"},
        "old": {"types": "int", "default": 1, "first": "1.1", "deprecated": "1.1"},
    }
    assert made["sections"]["NewConfig"]["first"] == "1.1"
    assert made["sections"]["json:top"]["keys"] == {"by_hand": {"types": "int"}}
    assert list(made["sections"]) == sorted(made["sections"])


def test_what_comes_back_was_absent(tools: Any) -> None:
    made = table(tools, ("1.1", NEW), ("1.2", NEW), ("1.3", OLD))
    assert made["sections"]["ToyConfig"]["keys"]["gone"] == {
        "types": "bool",
        "default": False,
        "absent": ["1.1", "1.2"],
    }


def test_the_same_release_changes_nothing(tools: Any) -> None:
    made = table(tools, ("1.1", NEW))
    before = copy.deepcopy(made)
    assert tools.merge("toy", made, tools.package({"toy/config.py": OLD}), "1.1") == []
    assert made == before
    assert tools.merge("toy", made, tools.package({"toy/config.py": NEW}), "1.2") == []
    assert made["versions"] == ["1.0", "1.1", "1.2"]
    assert made["sections"] == before["sections"]


def test_an_older_release_is_refused(tools: Any) -> None:
    with pytest.raises(ValueError, match=r"0\.9 is older than 1\.0"):
        table(tools, ("0.9", NEW))


def test_what_a_release_asks_for(tools: Any) -> None:
    metadata = (
        "Requires-Dist: transformers (!=5.1.0,>=4.56.2)\nRequires-Dist: accelerate>=1.4.0\n"
        'Requires-Dist: accelerate>=2; extra == "dev"\nRequires-Dist: datasets>=3\n'
    )
    assert tools.pins(metadata) == [("transformers", "!=5.1.0,>=4.56.2"), ("accelerate", ">=1.4.0")]


@pytest.mark.parametrize("path", sorted(HISTORY.glob("*.json")), ids=lambda path: path.stem)
def test_histories_are_in_order(path: Path, tools: Any) -> None:
    text = path.read_text("utf-8")
    made = json.loads(text)
    assert tools.text(made) == text
    order = {release: at for at, release in enumerate(made["versions"])}
    known = [version(release) for release in made["versions"]]
    assert None not in known
    assert list(made["sections"]) == sorted(made["sections"])
    for name, section in made["sections"].items():
        for key, entry in section["keys"].items():
            said = [entry.get(word) for word in ("first", "deprecated", "removed")]
            begin = order[entry.get("first", section["first"])]
            assert all(release in order for release in said if release), (name, key)
            assert all(order[release] >= begin for release in said[1:] if release), (name, key)
            assert [order[since] for since, *_ in entry.get("defaults", ())] == sorted(
                order[since] for since, *_ in entry.get("defaults", ())
            ), (name, key)
