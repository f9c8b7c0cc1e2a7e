"""The page runner, with a check that finds the word `bad`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trainlint.documents import Place
from trainlint.pages import Outcome, PageError, blocks, examples, problems, rewritten, run_example, verify
from trainlint.result import Result
from trainlint.rule import Edit, Finding, Fix, Note, Rule

RULE = "word-bad"


def check(folder: Path) -> Result:
    found: list[Finding] = []
    for path in sorted(folder.rglob("*.yaml")):
        file = path.relative_to(folder).as_posix()
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for hit in re.finditer("bad|ugly", line):
                place = Place(file, number, hit.start() + 1, number, hit.end() + 1)
                rule = RULE if hit.group() == "bad" else "word-ugly"
                fix = Fix((Edit(place, "good"),), "unsafe")
                related = (Note(Place(file), "in this file"),)
                found.append(Finding(rule, "error", "a bad word", place, "write `good`", related, fix))
    return Result(tuple(found))


PAGE = """\
# word-bad

Bad words are bad. Plain code is no example:

```yaml
a: bad
```

```yaml file=a.yaml
a: bad
b: ugly
```

```toml file=sub/trainlint.toml
x = 1
```

```report
a.yaml:1:4: error: a bad word [word-bad]
   note: a.yaml:1:1: in this file
   help: write `good`
```

```fixed file=a.yaml
a: good
b: ugly
```

And silent:

```yaml file=a.yaml
a: fine
```

```report silent
```
"""


def test_a_good_page_has_no_problems() -> None:
    assert problems(PAGE, RULE, check) == []
    assert rewritten(PAGE, RULE, check) == PAGE


def test_examples_end_at_their_report() -> None:
    first, second = examples(PAGE)
    assert [block.file for block in first.files] == ["a.yaml", "sub/trainlint.toml"]
    assert first.report is not None
    assert [block.kind for block in blocks(PAGE)] == ["prose", "file", "file", "report", "fixed", "file", "report"]
    assert run_example(second, RULE, check) == Outcome("", {})


def test_blocks_are_rewritten() -> None:
    drifted = PAGE.replace("a bad word [word-bad]", "something else").replace("a: good\nb: ugly", "a: old")
    assert rewritten(drifted, RULE, check) == PAGE
    assert len([line for line in problems(drifted, RULE, check) if "is not what is said" in line]) == 2


def test_missing_blocks_are_added() -> None:
    bare = PAGE[: PAGE.index("```report\n")] + PAGE[PAGE.index("And silent") : PAGE.index("```report silent")]
    assert any("no `report` block" in line for line in problems(bare, RULE, check))
    assert rewritten(bare.rstrip("\n") + "\n", RULE, check).split() == PAGE.split()
    assert problems(rewritten(bare, RULE, check), RULE, check) == []


def test_a_fixed_block_without_a_fix_goes() -> None:
    page = PAGE.replace("And silent:", "And silent:\n").rstrip("\n") + "\n\n```fixed file=a.yaml\na: good\n```\n"
    assert rewritten(page, RULE, check) == PAGE.replace("And silent:", "And silent:\n")


def test_a_block_that_became_silent_says_so() -> None:
    page = "# word-bad\n\n```yaml file=a.yaml\nx: 1\n```\n```report\nold\n```\n"
    assert "```report silent\n```\n" in rewritten(page, RULE, check)


def test_a_page_fires_and_is_silent_and_shows_its_fix() -> None:
    loud = PAGE[: PAGE.index("And silent")]
    assert problems(loud, RULE, check) == [": no example that the rule is silent about"]
    quiet = "# word-bad\n\n" + PAGE[PAGE.index("And silent") :]
    assert problems(quiet, RULE, check) == [": no example that the rule speaks of"]
    unfixed = PAGE[: PAGE.index("```fixed")] + PAGE[PAGE.index("And silent") :]
    assert problems(unfixed, RULE, check) == [": the rule has a fix, but no `fixed` block shows it"]
    assert problems("# other\n" + PAGE, RULE, check) == [":1: the page starts with `# word-bad`"]


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("```yaml file=a.yaml\na: 1\n", "p.md:1:1: a fenced block that does not end"),
        ("```report\n```\n", "p.md:1:1: a report without files before it"),
        ("```yaml file=../a.yaml\n```\n", "p.md:1:1: `../a.yaml` lies outside of the example"),
        (
            "```yaml file=a\n```\n```report\n```\n```fixed file=b\n```\n",
            "p.md:5:1: no file `b` in the example that this fixes",
        ),
    ],
)
def test_a_page_that_can_not_be_read_says_where(page: str, message: str) -> None:
    with pytest.raises(PageError) as caught:
        examples(page, "p.md")
    assert str(caught.value) == message


def test_longer_fences_hold_fences() -> None:
    (block,) = blocks("````yaml file=a.yaml\n```\nx\n```\n````\n")
    assert block.text == "```\nx\n```\n"


def test_a_rule_without_a_page_is_found(tmp_path: Path) -> None:
    rule = Rule(RULE, "word", "error", lambda view: (), source=str(tmp_path / "word-bad.py"))
    assert verify(rule, check) == [f"{tmp_path / 'word-bad.md'}: the rule `word-bad` has no page"]
    (tmp_path / "word-bad.md").write_text(PAGE.replace("a bad word [", "an old word ["), "utf-8")
    assert verify(rule, check) != []
    assert verify(rule, check, update=True) == []
    assert (tmp_path / "word-bad.md").read_text("utf-8") == PAGE
