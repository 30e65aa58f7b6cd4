"""The estate for programs: each view gets every look, and prints what is new."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from vgpuctl.cli.sanitize import one_line
from vgpuctl.reporting.situation import Situation
from vgpuctl.reporting.status_document import Document, document


class View(AbstractContextManager["View"]):
    """Shows looks until the watching ends."""

    @abstractmethod
    def show(self, situation: Situation) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, t: TracebackType | None) -> None:
        return None


class Documents(View):
    """Prints a document after each change."""

    def __init__(self, write: Callable[[Document], str]) -> None:
        self._write = write
        self._shown: Document | None = None

    def show(self, situation: Situation) -> None:
        if (now := lasting(situation)) != self._shown:
            print(self._write(document(situation)), flush=True)
            self._shown = now


class WorkerNames(View):
    """Prints all workers' names, then each name that changed."""

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}

    def show(self, situation: Situation) -> None:
        workers = {worker["name"]: worker for worker in document(situation)["workers"]}
        for name, worker in workers.items():
            if self._known.get(name) != worker:
                print(one_line(f"worker/{name}"), flush=True)
        self._known = workers


def lasting(situation: Situation) -> Document:
    """Return what two looks are compared by: everything but the time of the look."""
    return {key: value for key, value in document(situation).items() if key != "observedAt"}
