"""What a due step waits for, as data. `reporting.waits` makes sentences of it, at the place where they are shown."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Reason(Enum):
    UNDER_WAY = "under way"
    """Nothing holds the step up: its requests are sent as soon as they may be."""
    PODS = "pods"
    POD_OF_WORKLOAD = "pod of a workload"
    POD_NOT_ALLOWED = "pod not allowed"
    BUDGET = "budget"
    SEVERAL_BUDGETS = "several budgets"
    NODE_GONE = "node gone"
    VOLUME = "volume"
    GUEST = "guest"
    NOT_BACK = "not back"
    SIZE = "size"
    UNHEARD = "unheard"
    DOUBT = "doubt"
    VCENTER_TASK = "vCenter task"
    EARLIER_REQUEST = "earlier request"
    ABOUT_TO_STOP = "about to stop"
    THROTTLED = "throttled"
    TURN = "turn"
    CARD = "card"
    LAST_START = "last start"
    ADMISSION = "admission"
    LAW = "law"


@dataclass(frozen=True, slots=True)
class Wait:
    """What a step waits for. `details`: the names and numbers that a sentence about it needs, in order."""

    # Decision 0021: places used to recognise a wait by words in its sentence, so no sentence could change safely.
    reason: Reason
    details: tuple[str, ...] = ()

    @classmethod
    def of(cls, reason: Reason, *details: object) -> Wait:
        return cls(reason, tuple(map(str, details)))


UNDER_WAY = Wait(Reason.UNDER_WAY)
