"""Names of VMs, pods and cards are others' words: what a terminal would obey is shown, not obeyed."""

from __future__ import annotations

_CONTROL = {code: "\ufffd" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}
#: Breaks of a line, and marks that turn the direction of writing, by which a name could pass for another.
_TURNING = dict.fromkeys((9, 10, 1564, 8206, 8207, *range(8232, 8239), *range(8294, 8298)), "�")


def harmless(text: str) -> str:
    return text.translate(_CONTROL)


def one_line(text: str) -> str:
    """Where it must not break the line either."""
    return harmless(text).translate(_TURNING)
