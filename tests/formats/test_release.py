import pytest

from trainlint.formats import Draft
from trainlint.formats.semantics.release import by_release, release
from trainlint.run import Value


@pytest.mark.parametrize(
    ("text", "at", "answer"),
    [
        ("4.41.2", "4.41", True),
        ("4.41.2", "4.42", False),
        ("5.0.0", "5", True),
        (">=4.46,<5", "5", False),
        (">=4.46,<5", "4.46", True),
        (">=4.46,<5", "4.50", None),
        ("<5", "4.30", None),
        ("~=4.46.0", "4.47", False),
        ("4.46", "4.46.2", None),
        ("not a version", "4.46", None),
    ],
)
def test_since(text, at, answer):
    assert release({"p": Value(text)}, "p").since(at) is answer


def test_one_value_that_is_possible_is_the_default():
    steps = ("", "a"), ("2", "b"), ("3", "c")
    draft = Draft((), {}, {"p": Value("2.5.0")})
    by_release(draft, "attention", "p", *steps)
    assert draft.values["attention"].value == "b"
    assert draft.values["attention"].note == "p >=2,<3"


def test_several_are_possible_with_the_releases_they_hold_for():
    draft = Draft((), {}, {"p": Value(">=2")})
    by_release(draft, "attention", "p", ("", "a"), ("2", "b"), ("3", "c"))
    assert [(one.value, one.note) for one in draft.possible["attention"]] == [("b", "p >=2,<3"), ("c", "p >=3")]


def test_no_default_in_some_releases_is_no_default():
    draft = Draft((), {}, {})
    by_release(draft, "attention", "p", ("", "a"), ("2", None))
    assert not draft.has("attention")
