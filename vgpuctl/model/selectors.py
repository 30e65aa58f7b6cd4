"""Label selectors as kubectl's -l takes them: `a=b,c!=d,e in (f,g),h,!i`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from vgpuctl.basics.bounded import MOST_WHOLE, UnreadableError, whole
from vgpuctl.model.errors import UsageError

Requirement = tuple[str, str, tuple[str, ...]]

_OPERATORS = {"=": "In", "==": "In", "!=": "NotIn", "in": "In", "notin": "NotIn", ">": "Gt", "<": "Lt"}
_SIGNS = ("=", "==", "!=", ">", "<")
_TOKEN = re.compile(r"\s*(==|!=|[=!<>(),]|[^\s=!<>(),]+)")
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SEPARATORS = (*_SIGNS, "!", "(", ")", ",", "")
LONGEST_NAME, LONGEST_DOMAIN = 63, 253


@dataclass(frozen=True, slots=True)
class Selector:
    """A Kubernetes label selector, read once."""

    labels: Mapping[str, str] = field(default_factory=dict)
    expressions: tuple[tuple[str, str, tuple[str, ...]], ...] = ()

    @classmethod
    def of(cls, raw: Mapping[str, Any] | None) -> Selector:
        raw = raw or {}
        expressions = (
            (e["key"], e["operator"], tuple(e.get("values") or ())) for e in raw.get("matchExpressions") or ()
        )
        return cls(raw.get("matchLabels") or {}, tuple(expressions))

    def matches(self, labels: Mapping[str, str]) -> bool:
        if any(labels.get(key) != value for key, value in self.labels.items()):
            return False
        return all(_holds(labels.get(key), operator, values) for key, operator, values in self.expressions)


def _holds(value: str | None, operator: str, values: tuple[str, ...]) -> bool:
    match operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "Gt" | "Lt":
            return _compared(value, operator, values[0])
        case _:
            return value is None


def _compared(value: str | None, operator: str, bound: str) -> bool:
    """True if the label's number is above (Gt) or below (Lt) the bound. A text that is no number is neither."""
    try:
        mine, other = (whole(number, "a label", -MOST_WHOLE) for number in (value, bound))
    except UnreadableError:
        return False
    return mine > other if operator == "Gt" else mine < other


def parse_selector(text: str) -> Selector:
    """Return the selector. UsageError shows the place that cannot be understood."""
    return Selector(expressions=tuple(_Parser(text).requirements()))


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [(match[1], match.start(1)) for match in _TOKEN.finditer(text)]
        self._at = 0

    def requirements(self) -> Iterator[Requirement]:
        if not self._tokens:
            return
        yield self._requirement()
        while self._peek() == ",":
            self._take()
            yield self._requirement()
        if self._peek():
            raise self._wrong(f"expected a comma or the end, not '{self._peek()}'")

    def _requirement(self) -> Requirement:
        if self._peek() == "!":
            self._take()
            return self._key(), "DoesNotExist", ()
        key = self._key()
        sign = self._peek()
        if sign in {"", ","}:
            return key, "Exists", ()
        if sign not in _OPERATORS:
            raise self._wrong(f"expected one of =, ==, !=, in, notin, >, < after {key}, not '{sign}'")
        self._take()
        values = (self._value(),) if sign in _SIGNS else self._values(sign)
        if sign in {">", "<"} and not re.fullmatch(r"-?[0-9]+", values[0]):
            raise self._wrong(f"{key}{sign} wants a whole number, not '{values[0]}'")
        return key, _OPERATORS[sign], values

    def _key(self) -> str:
        key = self._peek()
        if key in _SEPARATORS:
            raise self._wrong(f"expected a label's key, not '{key}'" if key else "expected a label's key at the end")
        domain, slash, name = key.rpartition("/")
        fits = len(domain) <= LONGEST_DOMAIN and _DOMAIN.fullmatch(domain) if slash else True
        if key in {"in", "notin"} or not fits or not _fits(name):
            raise self._wrong(f"'{key}' cannot be a label's key")
        self._take()
        return key

    def _values(self, sign: str) -> tuple[str, ...]:
        """Return the values in `(a, b)`; an empty place is the empty value, as for kubectl."""
        if self._peek() != "(":
            raise self._wrong(f"expected values in parentheses after {sign}")
        self._take()
        if self._peek() == ")":
            raise self._wrong(f"{sign} wants one value at least")
        found = [self._value()]
        while self._peek() == ",":
            self._take()
            found.append(self._value())
        if self._peek() != ")":
            raise self._wrong("expected a comma or )")
        self._take()
        return tuple(dict.fromkeys(found))

    def _value(self) -> str:
        value = self._peek()
        if value in {"", ",", ")"}:
            return ""
        if not _fits(value):
            raise self._wrong(f"'{value}' cannot be a label's value")
        self._take()
        return value

    def _peek(self) -> str:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else ""

    def _take(self) -> None:
        self._at += 1

    def _wrong(self, what: str) -> UsageError:
        place = self._tokens[self._at][1] + 1 if self._at < len(self._tokens) else len(self._text) + 1
        return UsageError(
            f"The selector '{self._text}' cannot be understood at character {place}: {what}.",
            hint="A selector looks like  a=b,c!=d,e in (f,g),h,!i  as for kubectl.",
        )


def _fits(name: str) -> bool:
    return len(name) <= LONGEST_NAME and bool(_NAME.fullmatch(name))
