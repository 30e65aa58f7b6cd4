"""Bytes changed on their way: a reply that is no JSON or XML any more, or one that says something else."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

_TEXT = re.compile(rb">([^<>]*\w[^<>]*)</")


def is_readable(body: bytes) -> bool:
    """True if it is JSON or XML."""
    try:
        json.loads(body)
    except ValueError:
        try:
            ElementTree.fromstring(body)
        # LookupError: an encoding that does not exist.
        except (ElementTree.ParseError, ValueError, LookupError):
            return False
    return True


def broken(body: bytes, chance: random.Random) -> bytes:
    """The same length, with some bytes changed; by chance it may still be readable."""
    found = bytearray(body)
    for _ in range(chance.choice([1, 1, 3, 20])):
        found[chance.randrange(len(found))] = chance.randrange(256)
    return bytes(found)


def altered(body: bytes, chance: random.Random) -> bytes:
    """Still JSON or XML, and one value of it is another one."""
    return _altered_json(body, chance) if body[:1] in b"{[" else _altered_xml(body, chance)


def _altered_json(body: bytes, chance: random.Random) -> bytes:
    document = json.loads(body)
    leaves = list(_leaves(document))
    if leaves:
        inside, key = chance.choice(leaves)
        inside[key] = _other(inside[key], chance)
    return json.dumps(document).encode()


def _leaves(value: Any) -> Iterator[tuple[Any, Any]]:
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        if isinstance(inner, dict | list) and inner:
            yield from _leaves(inner)
        else:
            yield value, key


def _other(value: Any, chance: random.Random) -> Any:
    if isinstance(value, str) and value:
        at = chance.randrange(len(value))
        return value[:at] + chance.choice("0aZ-é") + value[at + 1 :]
    return chance.choice([None, -1, "", [], {}, not value, 10**30])


def _altered_xml(body: bytes, chance: random.Random) -> bytes:
    texts = list(_TEXT.finditer(body))
    if not texts:
        return body
    found = chance.choice(texts)
    at = chance.randrange(*found.span(1))
    return body[:at] + chance.choice([b"0", b"a", b"Z", b"-"]) + body[at + 1 :]
