"""Codes: each reason that stops a host's part has one, for searching and for `vgpuctl explain`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

#: The code of a host whose way back failed, too. The daemon leaves such a host where it is.
WAY_BACK_FAILED = "VG404"


class Coded:
    """A reason with a code. A released code never changes its meaning.

    `title`: what the code means, in general. `way_out`: what a person can do.
    """

    # Decision 0022: programs that read `-o json` go by the code, for sentences may change.
    code: ClassVar[str] = ""
    title: ClassVar[str] = ""
    way_out: ClassVar[str] = ""


def coded_kinds(base: type[Coded] = Coded) -> Iterator[type[Coded]]:
    """Yield each class below `base` that has a code of its own.

    These classes have no slots: Python keeps the class without slots among the subclasses too.
    """
    for kind in base.__subclasses__():
        if "code" in vars(kind):
            yield kind
        yield from coded_kinds(kind)
