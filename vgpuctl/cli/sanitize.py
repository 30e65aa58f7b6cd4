"""Names of VMs, pods and cards, reasons of servers and words of files are others': what a terminal would obey, or what
would make a line or a name look like another, is shown and not obeyed.

All that is printed goes through here, at the place where it leaves: `Paper` for people, `documents` for programs,
`progress.Lines` for logs, and the words of the option parser.
"""

from __future__ import annotations

_CONTROLS = {*range(32), *range(127, 160)}
#: Marks that turn the direction of writing, breaks of lines besides the line feed, and code points without a character.
_ODD = {0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x2070), 0xFFFE, 0xFFFF}
_HALVES = {*range(0xD800, 0xE000)}
_LAYOUT = {ord("\n"), ord("\t")}

#: The code points that never leave as they are, but for the line feeds and tabs that are our own.
RISKY = frozenset(_CONTROLS | _ODD | _HALVES)

_SHOWN = dict.fromkeys(RISKY - _LAYOUT, "\ufffd")
_IN_A_LINE = dict.fromkeys(RISKY, "\ufffd")
_MENDED = dict.fromkeys(_HALVES, "\ufffd")
_WRITTEN = {code: f"\\u{code:04x}" for code in RISKY - _LAYOUT} | _MENDED


def whole(text: str) -> str:
    """Without halves of characters, which no encoding knows."""
    return text.translate(_MENDED)


def sanitize(text: str) -> str:
    """For a text whose line feeds are our own."""
    return text.translate(_SHOWN)


def one_line(text: str) -> str:
    """For what must not break the line either."""
    return text.translate(_IN_A_LINE)


def escaped(text: str) -> str:
    """For a document in which all texts stand in double quotes: the same text is read from it. A half of a character
    that has lost its other half is none in any encoding."""
    return text.translate(_WRITTEN)
