"""A refusal: why a host's part of a wish cannot end well, and what would help."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from vgpuctl.model.codes import Coded


@dataclass(frozen=True, kw_only=True)
class Refusal(Coded, ABC):
    """The parts of a refusal. Each kind is a class, and it alone makes sentences of them."""

    host: str

    @property
    @abstractmethod
    def message(self) -> str: ...

    @property
    def details(self) -> tuple[str, ...]:
        """Return facts that support the message, a line each."""
        return ()

    @property
    def hint(self) -> str:
        """Return what would help here. Kinds that know more than the general way out say it."""
        return self.way_out
