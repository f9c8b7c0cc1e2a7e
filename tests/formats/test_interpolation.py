"""`${key}` as OmegaConf reads it."""

from __future__ import annotations

from trainlint.documents import Mapping, from_text, plain
from trainlint.formats.semantics.interpolation import resolved

TEXT = """
a: 2
b: ${a}
c: x/${d.e}/y
d: {e: ${f}, g: ['${a}']}
f: z
loop: ${pool}
pool: ${loop}
env: ${oc.env:HOME}
gone: ${nothing}
"""


def test_names_are_replaced_and_the_rest_stays_as_written() -> None:
    root = from_text("x.yaml", TEXT.replace("{e: ${f}, g", "{e: '${f}', g"), "yaml").roots[0]
    assert isinstance(root, Mapping)
    assert plain(resolved(root)) == {
        "a": 2,
        "b": 2,
        "c": "x/z/y",
        "d": {"e": "z", "g": [2]},
        "f": "z",
        "loop": "${pool}",
        "pool": "${loop}",
        "env": "${oc.env:HOME}",
        "gone": "${nothing}",
    }


def test_places_and_raw_texts_stay() -> None:
    root = from_text("x.yaml", "a: 2\nb: ${a}\n", "yaml").roots[0]
    assert isinstance(root, Mapping)
    node = resolved(root).get("b")
    assert (node.value, node.raw, node.place.line) == (2, "${a}", 2)  # type: ignore[union-attr]


MORE = """
a: {b: {c: 4, d: "${.c}", e: "${..f}"}, f: x}
select: ${oc.select:a.b.c,9}
fallback: ${oc.select:gone.away,null}
environment: ${oc.env:PORT,8}
words: ${oc.env:NAME,'null'}
unset: ${oc.env:NAME}
inner: ${a.b}
missing: ???
product: ${multiply:${a.b.c},2}
package: ${training.a.f}
"""


def test_relative_names_and_resolvers() -> None:
    root = from_text("x.yaml", MORE, "yaml").roots[0]
    assert isinstance(root, Mapping)
    assert plain(resolved(root, ("training",))) == {
        "a": {"b": {"c": 4, "d": 4, "e": "x"}, "f": "x"},
        "select": 4,
        "fallback": None,
        "environment": 8,
        "words": "null",
        "unset": "${oc.env:NAME}",
        "inner": {"c": 4, "d": 4, "e": "x"},
        "missing": None,
        "product": "${multiply:4,2}",
        "package": "x",
    }
    assert plain(resolved(root))["package"] == "${training.a.f}"  # type: ignore[index]
