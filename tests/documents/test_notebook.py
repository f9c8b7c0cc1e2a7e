from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainlint.documents import Document, Place, from_text, syntax_of


def notebook(*cells: str, whole: bool = False, language: str = "python", indent: int | None = 1) -> str:
    """The file of a notebook; a cell that begins with `# md` is text, `whole` writes each source as one string."""
    made = []
    for cell in cells:
        source: object = cell if whole else cell.splitlines(keepends=True)
        kind = "markdown" if cell.startswith("# md") else "code"
        made.append({"cell_type": kind, "metadata": {"tags": ["]", '"']}, "outputs": [[{"a": "}"}]], "source": source})
    language_info = {"codemirror_mode": {"name": "ipython"}, "name": language}
    return json.dumps(
        {"cells": made, "metadata": {"kernelspec": {"language": language}, "language_info": language_info}},
        indent=indent,
        ensure_ascii=len(cells) % 2 == 0,
    )


def read(text: str) -> Document:
    return from_text("a.ipynb", text, "notebook")


def at(text: str, line: int, column: int) -> str:
    """What stands at a place of the file."""
    return text.split("\n")[line - 1][column - 1 :]


def test_notebooks_are_known_by_their_name() -> None:
    assert syntax_of("a/train.ipynb") == "notebook"


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("indent", [None, 1])
def test_cells_become_one_script(whole: bool, indent: int | None) -> None:
    text = notebook('x = "a\\tb"\ny = 2\n', "# md\nno code", 'é = "𝄞"\n\nz = 3', whole=whole, indent=indent)
    document = read(text)
    assert (document.syntax, document.problems) == ("python", ())
    assert document.text == 'x = "a\\tb"\ny = 2\n\né = "𝄞"\n\nz = 3'
    assert document.module is not None
    made = document.notebook
    assert made is not None
    assert made.text == text
    for line, column, sign in ((1, 1, "x ="), (2, 5, "2"), (6, 1, "z = 3"), (6, 5, "3")):
        assert at(text, *made.position(line, column)).startswith(sign)
    assert at(text, *made.position(1, 10)).startswith('\\"')
    assert at(text, *made.position(6, 6)).startswith('"')
    assert [made.cell(Place("a.ipynb", line)) for line in (1, 2, 4, 6)] == [1, 1, 3, 3]


source = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp"), include_characters="\n\t"))


@given(st.lists(source, max_size=3), st.booleans(), st.sampled_from((None, 1)))
def test_every_sign_leads_to_its_place(cells: list[str], whole: bool, indent: int | None) -> None:
    cells = [f"# {cell.replace(chr(10), chr(10) + '# ')}" for cell in cells if not cell.startswith(" md")]
    text = notebook(*cells, whole=whole, indent=indent)
    document = read(text)
    made = document.notebook
    assert made is not None
    assert document.text.replace("\n\n", "\n").strip("\n") == "\n".join(cells).replace("\n\n", "\n").strip("\n")
    for number, line in enumerate(document.text.split("\n"), 1):
        for column, sign in enumerate(line, 1):
            found = at(text, *made.position(number, column))
            assert found.startswith((sign, json.dumps(sign, ensure_ascii=False)[1:-1], json.dumps(sign)[1:-1]))


MAGICS = """\
!pip install -q trl==0.19.0 \\
    "transformers>=4.50"
%matplotlib inline
files = !ls
if files:
    !rm -r out
SFTConfig?
total = (1
         %len(files))
"""


def test_magics_are_taken_out_without_moving_a_line() -> None:
    document = read(notebook(MAGICS))
    assert document.text.split("\n")[:7] == ["pass", "", "pass", "files = None", "if files:", "    pass", "pass"]
    made = document.notebook
    assert made is not None
    assert made.shell.split("\n")[:3] == [
        " pip install -q trl==0.19.0 \\",
        '    "transformers>=4.50"',
        "",
    ]
    assert at(made.text, *made.position(1, 2)).startswith("pip install")


def test_a_remainder_is_no_magic() -> None:
    assert read(notebook("x = (5\n     %len('ab'))\n")).text == "x = (5\n     %len('ab'))\n"


@pytest.mark.parametrize(
    ("cell", "code", "shell"),
    [
        ("%%bash\npip install trl==0.19.0\n", "", "\npip install trl==0.19.0\n"),
        ("%%writefile a.py\nimport os\n", "", "\n\n"),
        ("%%time\nx = 1\n", "pass\nx = 1\n", ""),
        ("%%html\n<b>\n", "", ""),
        ("for broken in\n", "", ""),
        ("await thing()\n", "await thing()\n", ""),
        ("%env A=1\n%cd x\n", "pass\npass\n", ""),
        ("%pip install trl==0.19.0", "pass", " pip install trl==0.19.0"),
    ],
)
def test_cells_that_are_no_python(cell: str, code: str, shell: str) -> None:
    document = read(notebook(cell, "y = 2"))
    made = document.notebook
    assert made is not None
    assert document.text.rstrip("\n").endswith("y = 2")
    assert document.text.removesuffix("y = 2").strip("\n") == code.strip("\n")
    assert made.shell.strip("\n") == shell.strip("\n")
    assert document.module is not None


def test_other_languages_and_empty_ones_say_nothing() -> None:
    for text in (notebook("x <- 1", language="R"), notebook(), '{"cells": [], "metadata": {}}', "{}"):
        document = read(text)
        assert (document.text, document.problems) == ("", ())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"cells": [',
        '{"cells": {}}',
        '{"cells": [{"source": [1]}]}',
        '{"cells": 1',
        '{"cells" []}',
        "{} x",
    ],
)
def test_broken_notebooks_have_a_problem_with_a_place(text: str) -> None:
    document = read(text)
    assert [problem.kind for problem in document.problems] == ["syntax"]
    assert document.notebook is None


def test_comments_for_the_linter_stand_in_cells() -> None:
    document = read(notebook("x = 1", "y = 2  # trainlint: device=RTX 4090"))
    (comment,) = document.comments
    assert (comment.text, comment.place.line) == ("device=RTX 4090", 2)
