"""Reads texts and numbers that others wrote: in annotations, labels, ConfigMaps and objects of a server.

Each reader has bounds and raises UnreadableError. The error says which field (`of`, a word of ours) is wrong and how,
in a few plain words that never quote what was written.
Python's own converters do not fit. `int` raises on 5,000 digits and takes foreign ones, `float` takes NaN, `json.loads`
runs out of stack on `[[[[…`, and a time without a zone cannot be compared.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, NoReturn

#: Kubernetes' whole numbers are int64.
MOST_WHOLE = 2**63 - 1
#: Ten years: no step, switch or Lease lasts longer.
MOST_SECONDS = 10 * 365 * 86400.0
LONGEST_TEXT = 1024
#: Digits of the largest version that a server counts to: 2**64.
LONGEST_VERSION = 20
MOST_ITEMS = 4096
#: The length of a document, in characters: a ConfigMap holds 1 MiB.
LONGEST_DOCUMENT = 1 << 20
DEEPEST = 16
#: These years leave room on both sides for every time zone.
FIRST_YEAR, LAST_YEAR = 1970, 9000
LONGEST_TIME = 64

_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")
_PERCENT = re.compile(r"([0-9]{1,6})%")


class UnreadableError(ValueError):
    """A text or number that another program wrote cannot be read. The message says why in a few words."""


def whole(value: Any, of: str, least: int = 0, most: int = MOST_WHOLE) -> int:
    """Return a whole number, written as a number or as a text of plain digits."""
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        value = int(value)
    # In Python, True is an int.
    if not isinstance(value, int) or isinstance(value, bool):
        raise UnreadableError(f"{of} is no whole number of at most 19 digits")
    if not least <= value <= most:
        raise UnreadableError(f"{of} is not between {least} and {most}")
    return value


def as_number(version: str) -> int:
    """Return a server's version of its data as a number, to tell older from newer; 0 if it is no number."""
    # KEP-5504 promises for the versions of one kind the order that etcd's versions always had.
    return int(version) if version.isascii() and version.isdecimal() and len(version) <= LONGEST_VERSION else 0


def seconds(value: Any, of: str, most: float = MOST_SECONDS) -> float:
    """Return a finite number of seconds from 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UnreadableError(f"{of} is no number of seconds")
    if not 0 <= value <= most:
        raise UnreadableError(f"{of} is not between 0 and {most:.0f} seconds")
    return float(value)


def text(value: Any, of: str, longest: int = LONGEST_TEXT) -> str:
    if not isinstance(value, str):
        raise UnreadableError(f"{of} is no text")
    if len(value) > longest:
        raise UnreadableError(f"{of} is longer than {longest} characters")
    return value


def cut(value: Any, longest: int = LONGEST_TEXT) -> str:
    """Return the text cut to this length, for display only: a text that is too long ends in `…`."""
    text = value if isinstance(value, str) else ""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def items(value: Any, of: str, most: int = MOST_ITEMS) -> list[Any]:
    if not isinstance(value, list):
        raise UnreadableError(f"{of} is no list")
    if len(value) > most:
        raise UnreadableError(f"{of} has more than {most} entries")
    return value


def texts(value: Any, of: str, most: int = MOST_ITEMS, longest: int = LONGEST_TEXT) -> tuple[str, ...]:
    """Return a list of texts."""
    return tuple(text(each, of, longest) for each in items(value, of, most))


def fields(value: Any, of: str, most: int = MOST_ITEMS) -> dict[str, Any]:
    """Return a mapping. In JSON documents, all keys are texts."""
    if not isinstance(value, dict):
        raise UnreadableError(f"{of} is no mapping")
    if len(value) > most:
        raise UnreadableError(f"{of} has more than {most} entries")
    return {text(key, of): each for key, each in value.items()}


def names(value: Any, of: str, most: int = MOST_ITEMS, longest: int = LONGEST_TEXT) -> tuple[str, ...]:
    """Return the names in `a,b,c`; empty places are left out."""
    found = text(value, of, LONGEST_DOCUMENT).split(",")
    return texts([name for name in found if name], of, most, longest)


def time(value: Any, of: str) -> datetime:
    """Return a moment with its zone, as Kubernetes writes it."""
    written = text(value, of, LONGEST_TIME)
    try:
        found = datetime.fromisoformat(written)
    except ValueError:
        raise UnreadableError(f"{of} is no time such as 2026-01-31T08:00:00Z") from None
    # Python: a time without a zone cannot be compared with one that has a zone.
    if found.tzinfo is None or not FIRST_YEAR < found.year < LAST_YEAR:
        raise UnreadableError(f"{of} is no time such as 2026-01-31T08:00:00Z")
    return found.astimezone(UTC)


def part(value: Any, of: str, whole_of: int) -> int:
    """Return a whole number, or a percentage of `whole_of`, rounded up."""
    percent = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    return math.ceil(int(percent[1]) * whole_of / 100) if percent else whole(value, of)


def document(value: Any, of: str, longest: int = LONGEST_DOCUMENT, deepest: int = DEEPEST) -> Any:
    """Return a JSON document; its numbers are finite and at most 19 digits long."""
    written = text(value, of, longest)
    try:
        # Measured: 300,000 open brackets in a ConfigMap, and an annotation of 5,000 digits, ended status and switch.
        found = json.loads(written, parse_int=_integer, parse_float=_number, parse_constant=_no_number)
    except _NumberError:
        raise UnreadableError(f"{of} has a number that is too large or none") from None
    except RecursionError:
        raise UnreadableError(f"{of} is nested deeper than {deepest}") from None
    except ValueError:
        raise UnreadableError(f"{of} is no JSON") from None
    if _deeper_than(found, deepest):
        raise UnreadableError(f"{of} is nested deeper than {deepest}")
    return found


class _NumberError(ValueError):
    """A number inside a document cannot be read."""


def _integer(digits: str) -> int:
    if len(digits) > 20:
        raise _NumberError
    return int(digits)


def _number(digits: str) -> float:
    found = float(digits)
    if not math.isfinite(found):
        raise _NumberError
    return found


def _no_number(_word: str) -> NoReturn:
    """Refuse `NaN` and `Infinity`: they are not JSON, but Python reads them."""
    raise _NumberError


def _deeper_than(found: Any, deepest: int) -> bool:
    """True if the document is nested deeper than this.

    The search goes level by level: recursion might overflow the stack.
    """
    level = [found]
    for _ in range(deepest):
        level = [each for holder in level for each in _inside(holder)]
        if not level:
            return False
    return True


def _inside(holder: Any) -> Iterable[Any]:
    """Return the lists and mappings in this one."""
    values: Iterable[Any] = holder.values() if isinstance(holder, dict) else holder if isinstance(holder, list) else ()
    return (each for each in values if isinstance(each, dict | list))
