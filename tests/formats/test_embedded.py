"""Commands inside values of other files: every character keeps its place, however the value is written."""

import pytest

from trainlint.documents import Mapping, Scalar, Sequence, from_text
from trainlint.formats.launch.command_line import Cells
from trainlint.formats.launch.embedded import Source


def source(text: str) -> tuple[Source, Mapping]:
    document = from_text("job.yaml", text, "yaml")
    root = document.roots[0]
    assert isinstance(root, Mapping)
    return Source(document), root


@pytest.mark.parametrize(
    "text",
    [
        "run: torchrun train.py --lr 1e-4\n",
        "run: 'torchrun train.py --name ''x'''\n",
        'run: "torchrun\\ttrain.py \\\\\\n  --name \\"x y\\""\n',
        "run: |\n  torchrun \\\n    train.py\n\n  exit 0\n",
        "run: |-\n    torchrun train.py\n",
        "run: |2\n    torchrun train.py\n",
        "run: >\n  torchrun\n  train.py --lr 3\n\n  done\n",
        "run: torchrun\n  train.py\n  --lr 3\n",
        "run: &a |  # why\n  torchrun train.py\n",
        "run: !!str 'torchrun train.py'\n",
    ],
)
def test_characters_stand_where_they_are_written(text: str) -> None:
    reader, root = source(text)
    node = root.get("run")
    assert isinstance(node, Scalar)
    cells = reader.cells(node)
    assert cells.text == node.value
    assert len(cells.stands) == len(cells.text)
    assert list(cells.stands) == sorted(cells.stands)
    for char, at in zip(cells.text, cells.stands, strict=True):
        assert char.isspace() or text[at] == char


def test_words_know_line_and_column() -> None:
    reader, root = source("name: x\nrun: |\n  cd a\n  torchrun \\\n    train.py --lr 1e-4\n")
    node = root.get("run")
    assert isinstance(node, Scalar)
    _, command = reader.shell(node)
    assert [(word.text, word.place.line, word.place.column) for word in command.words] == [
        ("torchrun", 4, 3),
        ("train.py", 5, 5),
        ("--lr", 5, 14),
        ("1e-4", 5, 19),
    ]


def test_a_variable_of_the_file_stands_where_it_is_set() -> None:
    reader, root = source("envs:\n  SIZE: 16\nrun: python train.py --size $SIZE --other $OTHER\n")
    node, size = root.get("run"), root.find("envs.SIZE")
    assert isinstance(node, Scalar)
    assert isinstance(size, Scalar)
    (command,) = reader.shell(node, {"SIZE": reader.cells(size), "OTHER": None})
    assert [word.text for word in command.words] == ["python", "train.py", "--size", "16", "--other", None]
    assert (command.words[3].place.line, command.words[3].place.column) == (2, 9)
    assert (command.words[3].used.line, command.words[3].used.column) == (3, 29)
    assert command.environment["SIZE"].text == "16"


def listed(text: str, known: dict[str, Cells | None] | None = None) -> list[list[str | None]]:
    reader, root = source(text)
    node = root.get("command")
    assert isinstance(node, Sequence)
    nodes = [item for item in node.items if isinstance(item, Scalar)]
    return [[word.text for word in command.words] for command in reader.executed(nodes, known or {})]


def test_a_list_is_one_command() -> None:
    assert listed('command: [torchrun, "--nproc_per_node=8", my train.py, 3]\n') == [
        ["torchrun", "--nproc_per_node=8", "my train.py", "3"]
    ]


def test_variables_of_a_list_are_those_of_kubernetes() -> None:
    known: dict[str, Cells | None] = {"N": Cells("8", (0,))}
    assert listed("command: [torchrun, --nproc_per_node=$(N), $N, $(M), '{{ .x }}']\n", known) == [
        ["torchrun", "--nproc_per_node=8", None, None, None]
    ]


def test_a_shell_in_a_list_runs_its_text() -> None:
    found = listed("command:\n- /bin/bash\n- -exc\n- |\n  X=4\n  torchrun --nproc_per_node $X t.py\n")
    assert found[1:] == [["torchrun", "--nproc_per_node", "4", "t.py"]]
