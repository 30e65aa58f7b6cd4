"""Quantities of resources, such as `500m`, `16Gi` or `1e3`: what they amount to, and how the API server writes them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil

#: Kubernetes: `resource.ParseQuantity` of k8s.io/apimachinery. Digits may be missing on both sides of the point.
_PATTERN = re.compile(r"([-+]?)([0-9]*)(?:\.([0-9]*))?(.*)", re.DOTALL)
_EXPONENT = re.compile(r"[eE]([-+]?[0-9]{1,4})")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {suffix: 10 * power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), start=1)}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = {exponent: suffix for suffix, exponent in _BINARY.items()}
#: Kubernetes: amounts are 64-bit numbers. Larger ones count as this.
_MOST = 2**63 - 1
#: Python converts at most 4300 digits; a quantity of more than these helps nobody.
_LONGEST = 1000
_MILLI = Fraction(1, 1000)


@dataclass(frozen=True, slots=True)
class _Parts:
    """`base` and `exponent`: what the suffix stands for. `plain`: the suffix is a letter, not an exponent."""

    negative: bool
    whole: str
    fraction: str
    base: int
    exponent: int
    plain: bool

    @property
    def value(self) -> Fraction:
        digits = Fraction(int(self.whole + self.fraction or "0"), 10 ** len(self.fraction))
        value = digits * Fraction(self.base) ** self.exponent
        return -value if self.negative else value

    @property
    def is_canonical(self) -> bool:
        """Return True if the server keeps the text as it was sent."""
        # Kubernetes: ParseQuantity reuses a text that needs no rounding and whose suffix could not be larger.
        digits = (self.whole + self.fraction).lstrip("0")
        if self.base == 2:
            return not self.fraction and int(digits or "0") % 8 != 0 and self.value <= _MOST
        scale = self.exponent - len(self.fraction)
        starts_well = bool(self.whole.lstrip("0")) and not digits.endswith("000")
        return len(digits) <= 18 and scale >= -3 and scale % 3 == 0 and starts_well


@lru_cache(maxsize=1024)
def quantity(text: str | float) -> float:
    """Return what a quantity amounts to. Raise ValueError for what the API server would not decode."""
    return float(min(_parse(_as_text(text)).value, Fraction(_MOST)))


@lru_cache(maxsize=1024)
def canonical(text: str | float) -> str:
    """Return the quantity as the API server stores it: no finer than a thousandth, with the largest suffix."""
    sent = _as_text(text)
    parts = _parse(sent)
    value = parts.value
    if parts.is_canonical:
        return sent
    if value == 0:
        return "0"
    # Kubernetes: the defaults of a ResourceList round up to thousandths, away from zero.
    thousandths = ceil(abs(value) / _MILLI)
    amount = min(thousandths * _MILLI, Fraction(_MOST)) if parts.base == 2 else thousandths * _MILLI
    # Kubernetes: small amounts and fractions lose their binary suffix.
    binary = parts.base == 2 and amount >= 1024 and amount.denominator == 1
    written = _in_powers_of_1024(amount) if binary else _in_powers_of_1000(amount, plain=parts.plain)
    return f"-{written}" if value < 0 else written


def _in_powers_of_1024(amount: Fraction) -> str:
    number, exponent = int(amount), 0
    while number % 1024 == 0 and exponent + 10 in _BINARY_SUFFIX:
        number, exponent = number // 1024, exponent + 10
    return f"{number}{_BINARY_SUFFIX.get(exponent, '')}"


def _in_powers_of_1000(amount: Fraction, *, plain: bool) -> str:
    number, exponent = int(amount / _MILLI), -3
    while number % 1000 == 0 and (exponent + 3 in _DECIMAL_SUFFIX or not plain):
        number, exponent = number // 1000, exponent + 3
    suffix = _DECIMAL_SUFFIX[exponent] if plain else f"e{exponent}"
    return f"{number}{suffix if exponent else ''}"


def _as_text(value: str | float) -> str:
    """Return a number as its JSON text. `true` is a number for Python, and none for the server."""
    if isinstance(value, bool):
        raise ValueError(f"{value} is no quantity")
    return value.strip() if isinstance(value, str) else repr(value)


def _parse(text: str) -> _Parts:
    found = _PATTERN.fullmatch(text)
    if not text or len(text) > _LONGEST or found is None:
        raise ValueError("it is no quantity such as 2, 500m or 16Gi")
    sign, whole, fraction, suffix = found.groups(default="")
    base, exponent = (10, _DECIMAL[suffix]) if suffix in _DECIMAL else (2, _BINARY.get(suffix, 0))
    power = _EXPONENT.fullmatch(suffix)
    if suffix not in _DECIMAL and suffix not in _BINARY and power is None:
        raise ValueError("unable to parse quantity's suffix")
    if power is not None:
        base, exponent = 10, int(power[1])
    return _Parts(sign == "-", whole, fraction, base, exponent, power is None)
