"""Laboratories that stand ready: one whose test is over begins again for the next that wants the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tests.support.lab import Lab


@dataclass
class Labs:
    """`folder`: where they are made, each in a folder of its own."""

    folder: Path
    _free: dict[tuple[str, ...], list[Lab]] = field(default_factory=dict)
    _made: int = 0

    def take(self, *options: str) -> Lab:
        if free := self._free.get(options):
            return free.pop()
        self._made += 1
        return Lab.up(self.folder / f"lab-{self._made}", *options)

    def give_back(self, lab: Lab, *options: str) -> None:
        """A scenario of the test's own is nobody else's; servers that a test has ended do not come back."""
        own = any("/" in option for option in options)
        if own or not lab.begin_again():
            lab.down()
        else:
            self._free.setdefault(options, []).append(lab)

    def down(self) -> None:
        for free in self._free.values():
            for lab in free:
                lab.down()
