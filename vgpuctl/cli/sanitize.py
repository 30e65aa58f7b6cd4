"""Makes foreign text harmless: what a terminal would obey is shown instead, and so are characters that fake lines or
names.

Names of VMs, pods and cards, reasons of servers and words of files are foreign. All output passes here, where it
leaves: `SafeConsole` for people, `documents` for programs, `progress.Lines` for logs, and the option parser's words.
"""

from __future__ import annotations

#: ECMA-48: 128 to 159 are controls as well; 155 begins what ESC [ begins.
_CONTROLS = {*range(32), *range(127, 160)}
#: Marks that change the writing direction, line breaks other than the line feed, and code points without a character.
_ODD = {0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x2070), 0xFFFE, 0xFFFF}
#: Measured before: half a character ended the output with a traceback.
_SURROGATES = {*range(0xD800, 0xE000)}
_LAYOUT = {ord("\n"), ord("\t")}

#: The code points that are never printed as they are. Our own line feeds and tabs are the exception.
RISKY = frozenset(_CONTROLS | _ODD | _SURROGATES)

_SHOWN = dict.fromkeys(RISKY - _LAYOUT, "\ufffd")
_IN_A_LINE = dict.fromkeys(RISKY, "\ufffd")
_MENDED = dict.fromkeys(_SURROGATES, "\ufffd")
_WRITTEN = {code: f"\\u{code:04x}" for code in RISKY - _LAYOUT} | _MENDED


def without_surrogates(text: str) -> str:
    """Replace halves of characters, which no encoding can write."""
    return text.translate(_MENDED)


def sanitize(text: str) -> str:
    """Sanitize a text whose line feeds are our own."""
    return text.translate(_SHOWN)


def one_line(text: str) -> str:
    """Sanitize a text that must stay on one line."""
    return text.translate(_IN_A_LINE)


def escaped(text: str) -> str:
    """Escape a text for a document with double quotes, so that the same text is read back.

    A lone half of a character is replaced: no encoding can write it.
    """
    return text.translate(_WRITTEN)
