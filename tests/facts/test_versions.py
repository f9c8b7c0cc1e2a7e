import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version as Reference

from trainlint.facts.versions import contains, parse, version

RELEASES = ("4.40.2", "4.41.0", "4.41.2", "4.46.3", "4.57.6", "5.0.0", "5.1.0")
texts = st.tuples(
    st.lists(st.integers(0, 30), min_size=1, max_size=3),
    st.sampled_from(["", "rc1", "b2", "a1", ".post2", ".dev3"]),
).map(lambda parts: ".".join(map(str, parts[0])) + parts[1])


@given(texts, texts)
def test_versions_are_ordered_as_packaging_orders_them(left, right):
    assert (version(left) < version(right)) == (Reference(left) < Reference(right))
    assert (version(left) == version(right)) == (Reference(left) == Reference(right))


@given(
    st.sampled_from(["==", "!=", ">=", "<="]),
    st.lists(st.integers(0, 9), min_size=2, max_size=3),
    st.lists(st.integers(0, 9), min_size=1, max_size=3),
)
def test_clauses_hold_as_packaging_says(operator, bound, item):
    bound, item = ".".join(map(str, bound)), ".".join(map(str, item))
    assert contains(operator + bound, item) == SpecifierSet(operator + bound).contains(item)


@pytest.mark.parametrize(
    ("spec", "inside", "outside"),
    [
        ("==4.41.2", "4.41.2", "4.41.1"),
        (">=4.46,<5", "4.57.1", "5.0"),
        (">=4.46, <5", "4.46", "4.45.9"),
        ("~=4.46.1", "4.46.9", "4.47"),
        ("~=4.46", "4.60", "5.0"),
        ("^4.46", "4.99", "5.0"),
        ("^0.9.1", "0.9.5", "0.10.0"),
        ("~4.46", "4.46.7", "4.47"),
        ("==4.41.*", "4.41.9", "4.42"),
        ("4.57", "4.57.3", "4.58"),
        ("4.57.1", "4.57.1", "4.57.2"),
        ("*", "1.0", None),
        (">2,!=2.5", "2.4", "2.5"),
    ],
)
def test_ranges_as_requirements_write_them(spec, inside, outside):
    assert contains(spec, inside)
    assert outside is None or not contains(spec, outside)


@pytest.mark.parametrize("text", ["git+https://example.org/x", ">=", "latest", "@ file"])
def test_what_is_no_range_is_unknown(text):
    assert parse(text) is None
    with pytest.raises(ValueError, match="no range"):
        contains(text, "1.0")


@pytest.mark.parametrize(
    ("spec", "releases"),
    [
        ("==4.41.2", ("4.41.2",)),
        ("==4.41.1", ("4.41.0",)),
        ("==4.40.0", ("4.40.2",)),
        (">=4.46,<5", ("4.46.3", "4.57.6")),
        (">=4.57.9,<5", ("4.57.6",)),
        ("4.41", ("4.41.0", "4.41.2")),
        ("==4.50.1", ("4.46.3",)),
        ("==9.0", ("5.1.0",)),
        ("==1.0", ("4.40.2",)),
    ],
)
def test_a_range_means_the_releases_of_its_minor_versions(spec, releases):
    assert parse(spec).among(RELEASES) == releases
