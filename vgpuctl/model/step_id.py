"""The identity of a step: what distinguishes it from all others."""

from __future__ import annotations

from typing import Self


class StepId(str):
    """A kind of step and its subject: a worker by its VM's name, or a workload by its key.

    The same step has the same identity in every plan. In the journal and for programs it is the text `Kind/subject`.
    It is a text, and not a pair, because plans of a large fleet look up a hundred thousand of them.
    """

    # Decision 0021: a text keeps its hash, and plans of 10,000 workers look up a hundred thousand identities.
    __slots__ = ("kind", "subject")
    kind: str
    subject: str

    def __new__(cls, kind: str, subject: str) -> Self:
        found = super().__new__(cls, f"{kind}/{subject}")
        found.kind, found.subject = kind, subject
        return found

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        """What a copy is made of: a text alone would not say where its kind ends."""
        return self.kind, self.subject

    @classmethod
    def read(cls, text: str) -> Self:
        """Return the identity in an entry of the journal, which may name a kind that only another release knows."""
        kind, _, subject = text.partition("/")
        return cls(kind, subject)
