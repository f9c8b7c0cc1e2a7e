from __future__ import annotations

import subprocess
import sys

import pytest

from trainlint.units import PREFIXES, UnitError, compatible, gib, parse, quantity, registry


@pytest.mark.parametrize(
    ("text", "unit", "number"),
    [
        ("24 GiB", "byte", 24 * 2**30),
        ("24GiB", "byte", 24 * 2**30),
        (" 24  GB ", "byte", 24e9),
        ("1.5 TiB", "byte", 1.5 * 2**40),
        (".5 MB", "byte", 5e5),
        ("512 kB", "byte", 512e3),
        ("512 KB", "byte", 512e3),
        ("1_000 B", "byte", 1000),
        ("2e9 bytes", "byte", 2e9),
        ("8 bit", "byte", 1),
        ("24 gibibyte", "byte", 24 * 2**30),
        ("512 tokens", "token", 512),
        ("1 token", "token", 1),
        ("8 Gparams", "parameter", 8e9),
        ("2 hours", "second", 7200),
        ("3 epochs", "epoch", 3),
        ("-1 step", "step", -1),
    ],
)
def test_quantities_as_people_write_them(text: str, unit: str, number: float) -> None:
    assert parse(text, unit) == pytest.approx(number, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "unit", "message"),
    [
        ("24", "byte", "`24` has no unit (write it like `24 GiB`)"),
        ("", "byte", "`` has no unit (write it like `24 GiB`)"),
        ("much", "byte", "`much` has no unit (write it like `24 GiB`)"),
        ("24", "token", "`24` has no unit"),
        ("24 tokens", "byte", "`24 tokens` is not a number of bytes"),
        ("2 GiB", "token", "`2 GiB` is not a number of tokens"),
        ("24 gigs", "byte", "`gigs` is no unit that trainlint knows: bytes are written `GB` or `GiB`"),
        ("24 GIB", "byte", "`GIB` is no unit that trainlint knows: bytes are written `GB` or `GiB`"),
        ("24 Gb", "byte", "`Gb` is no unit that trainlint knows: bytes are written `GB` or `GiB`"),
        ("24 G", "byte", "`G` is no unit that trainlint knows: bytes are written `GB` or `GiB`"),
        ("1e400 GiB", "byte", "`1e400 GiB` is too large a number"),
        ("1 GiB 2", "byte", "`1 GiB 2` has no unit (write it like `24 GiB`)"),
        ("nan GiB", "byte", "`nan GiB` has no unit (write it like `24 GiB`)"),
        ("inf GiB", "byte", "`inf GiB` has no unit (write it like `24 GiB`)"),
    ],
)
def test_what_is_no_quantity(text: str, unit: str, message: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse(text, unit)
    assert str(caught.value) == message


@pytest.mark.parametrize("prefix", PREFIXES)
def test_the_short_way_is_that_of_the_registry(prefix: str) -> None:
    assert parse(f"3 {prefix}B", "byte") == registry().Quantity(3, f"{prefix}B").to("byte").magnitude


def test_common_units_need_no_pint() -> None:
    code = (
        "import sys; from trainlint.units import parse; parse('24 GiB', 'byte'); parse('8 tokens', 'token');"
        "sys.exit('pint' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_what_can_be_compared() -> None:
    assert compatible("byte", "byte")
    assert compatible("byte", "GiB")
    assert compatible("", "")
    assert not compatible("byte", "token")
    assert not compatible("byte", "")
    with pytest.raises(UnitError):
        compatible("byte", "gigs")


def test_a_quantity_of_a_unit() -> None:
    assert str(quantity(2, "token").units) == "token"
    assert quantity(1, "GiB").to("byte").magnitude == 2**30


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 MiB"), (2**20, "1 MiB"), (2**29 - 1, "512 MiB"), (2**29, "0.5 GiB"), (31.24 * 2**30, "31.2 GiB")],
)
def test_bytes_as_people_read_them(count: float, text: str) -> None:
    assert gib(count) == text
