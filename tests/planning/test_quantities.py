"""Kubernetes' quantities, held against a slow and exact reference, whatever the server or a tenant writes."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vgpuctl.basics.bounded import UnreadableError
from vgpuctl.basics.quantities import count, thousandths

FACTORS = {
    **{"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1)},
    **{"k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12)},
    **{"P": Fraction(10**15), "E": Fraction(10**18)},
    **{f"{letter}i": Fraction(1024**power) for power, letter in enumerate("KMGTPE", 1)},
}
DIGITS = st.text("0123456789", max_size=25)
EXPONENTS = st.tuples(st.sampled_from("eE"), st.sampled_from(["", "+", "-"]), st.integers(0, 40)).map(
    lambda parts: ("".join(map(str, parts)), Fraction(10) ** int(f"{parts[1]}{parts[2]}"))
)
SUFFIXES = st.sampled_from(sorted(FACTORS)).map(lambda suffix: (suffix, FACTORS[suffix]))


def expected(number: Fraction) -> int:
    """As Kubernetes counts: capped at 2^63-1, what is finer than a thousandth rounded away from zero."""
    size = math.ceil(min(abs(number), Fraction(2**63 - 1)) * 1000)
    return -size if number < 0 else size


@given(
    st.sampled_from(["", "+", "-"]),
    DIGITS,
    st.none() | DIGITS,
    st.one_of(SUFFIXES, EXPONENTS),
)
@example("", "9223372036854775807", None, ("", Fraction(1)))
@example("-", "", "5", ("Ei", Fraction(1024**6)))
def test_every_form_is_read_as_kubernetes_reads_it(
    sign: str, whole: str, part: str | None, scale: tuple[str, Fraction]
) -> None:
    suffix, factor = scale
    written = f"{sign}{whole}{'' if part is None else f'.{part}'}{suffix}"
    if not whole and not part:
        with pytest.raises(UnreadableError):
            thousandths(written, "it")
        return
    number = Fraction(f"{whole or 0}.{part or 0}") * factor
    assert thousandths(written, "it") == expected(-number if sign == "-" else number)


@pytest.mark.parametrize(
    ("written", "amount"),
    [
        ("1e999999999", (2**63 - 1) * 1000),
        ("-1e999999999", -(2**63 - 1) * 1000),
        ("1e-999999999", 1),
        ("0e999999999", 0),
        (f"0.{'0' * 50}1E9999999999", (2**63 - 1) * 1000),
        (3, 3000),
        (0.25, 250),
    ],
)
def test_an_exponent_costs_no_more_than_its_digits(written: object, amount: int) -> None:
    assert thousandths(written, "it") == amount


@pytest.mark.parametrize(
    "written",
    [
        *(None, True, [], {}, "", ".", "e3", "Ki", "1e", "1e1.5", "1kk", "1ki", "1KI", "0x1", "NaN", "inf", "1_0"),
        *("1 ", " 1", "1\n", "1.2.3", "--1", "١", "1e١", "9" * 65, "9" * 5000, "1e" + "9" * 11, float("nan")),
    ],
    ids=lambda written: repr(written)[:20],
)
def test_what_is_none_is_unreadable_and_never_quoted(written: object) -> None:
    with pytest.raises(UnreadableError, match=r"^it is no quantity such as 2, 500m or 16Gi$"):
        thousandths(written, "it")


@pytest.mark.parametrize(("written", "pieces"), [("1k", 1000), ("4", 4), ("0", 0), ("4000m", 4), (2, 2)])
def test_pieces_are_counted_in_whole(written: object, pieces: int) -> None:
    assert count(written, "it") == pieces


@pytest.mark.parametrize("written", ["1500m", "-1", "0.5", "1n"])
def test_half_a_piece_is_none(written: str) -> None:
    with pytest.raises(UnreadableError, match=r"^it is no whole number of pieces$"):
        count(written, "it")
