"""Dockerfiles: what `pip install` lines pin, and what an image's tag says for certain."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from trainlint.documents import Place
from trainlint.resolve.versions.requirement import Said, lines, requirement, requirement_file, shown
from trainlint.run import Value

FORMAT = "dockerfile"
_FROM = re.compile(r"\s*FROM\s+(?:--\S+\s+)*(?P<image>\S+)(?:\s+AS\s+(?P<stage>\S+))?", re.IGNORECASE)
_ARGUMENT = re.compile(r"\s*(?:ARG|ENV)\s+(?P<name>\w+)[=\s]\s*[\"']?(?P<value>[\w.+:/-]*)[\"']?\s*$", re.IGNORECASE)
_BREAK = re.compile(r"[;&|]+")
_WORD = re.compile(r"\"[^\"]*\"|'[^']*'|[^\s\"';&|]+|[;&|]+")
IMAGES = (
    (re.compile(r"(?:^|/)pytorch/pytorch:(?P<torch>\d+\.\d+\.\d+)-"), ("torch",)),
    (re.compile(r"(?:^|/)rocm/pytorch:\S*_pytorch_(?:release_)?(?P<torch>\d+\.\d+\.\d+)"), ("torch",)),
    (re.compile(r"/(?:huggingface-)?pytorch-training:(?P<torch>\d+\.\d+\.\d+)-(?!transformers)"), ("torch",)),
    (
        re.compile(
            r"/huggingface-pytorch-training:(?P<torch>\d+\.\d+\.\d+)-transformers(?P<transformers>\d+\.\d+\.\d+)"
        ),
        ("torch", "transformers"),
    ),
    (re.compile(r"(?:^|/)huggingface/transformers-pytorch-gpu:(?P<transformers>\d+\.\d+\.\d+)$"), ("transformers",)),
    (re.compile(r"(?:^|/)vllm/vllm-openai:v(?P<vllm>\d+\.\d+\.\d+)$"), ("vllm",)),
)
"""Images whose tag names what is installed, by their publishers' own scheme of tags."""


def image(text: str, place: Place, file_format: str = FORMAT) -> Iterator[Said]:
    """What the name of an image says of the packages in it."""
    for pattern, names in IMAGES:
        found = pattern.search(text)
        if found is not None:
            for name in names:
                yield name, Value(found[name], "written", name, place, text, file_format=file_format)


def dockerfile(path: Path) -> Iterator[Said]:
    """What the last stage of a Dockerfile installs."""
    stages: dict[str, dict[str, Value[str] | None]] = {}
    known: dict[str, str] = {}
    stage: dict[str, Value[str] | None] = {}
    words: list[str] = []
    for number, line in lines(path):
        start, argument = _FROM.match(line), _ARGUMENT.match(line)
        if start is not None:
            name = _filled(start["image"], known)
            column = start.start("image") + 1
            place = Place(shown(path), number, column, number, column + len(start["image"]))
            stage = dict(stages.get(name.lower()) or image(name, place))
            if start["stage"]:
                stages[start["stage"].lower()] = stage
        elif argument is not None:
            known[argument["name"]] = argument["value"]
        elif not line.lstrip().startswith("#"):
            stage.update(_installed(path, number, line, words, known))
            if not line.rstrip().endswith("\\"):
                words.clear()
    yield from stage.items()


def _installed(path: Path, number: int, line: str, words: list[str], known: dict[str, str]) -> Iterator[Said]:
    """The requirements among the words behind `pip install`; `words` holds the command as far as it was read."""
    for word in _WORD.finditer(line):
        text = word[0].strip("\"'")
        if _BREAK.fullmatch(word[0]):
            words.clear()
            continue
        filled = _filled(text, known)
        if _installs(words):
            if words[-1] in ("-r", "--requirement"):
                yield from requirement_file(path.parent / Path(text).name, 1)
            elif not text.startswith("-") and "$" not in filled:
                column = word.start() + 1 + (word[0][0] in "\"'")
                said = requirement(Place(shown(path), number, column, number, column + len(text)), filled, FORMAT)
                if said is not None:
                    yield said
        words.append(text)


def _installs(words: list[str]) -> bool:
    """Whether the words so far are a `pip install` and its options."""
    if "install" not in words:
        return False
    return any(word.rpartition("/")[2] in ("pip", "pip3") for word in words[: words.index("install")])


def _filled(text: str, known: dict[str, str]) -> str:
    """A text with the values of the arguments that the file gives."""
    return re.sub(r"\$\{?(\w+)\}?", lambda found: known.get(found[1]) or found[0], text)
