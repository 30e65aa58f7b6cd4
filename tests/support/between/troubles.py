"""The kinds of trouble that a reply or an event may meet on its way."""

from __future__ import annotations

from enum import StrEnum


class Trouble(StrEnum):
    """What is done to a reply or an event. The last three are those of Sieve (OSDI 2022)."""

    CUT = "cut"
    TRUNCATED = "truncated"
    DELAYED = "delayed"
    REPEATED = "repeated"
    SWAPPED = "swapped"
    GARBLED = "garbled"
    ALTERED = "altered"
    SKIPPED = "state skipped"
    STALE = "state stale"
    UNOBSERVED = "state never observed"


SIEVE = frozenset({Trouble.SKIPPED, Trouble.STALE, Trouble.UNOBSERVED})
#: No client can find these out: the reply is right in form, and only wrong. They are healed when the adversary rests.
LIES = frozenset({Trouble.ALTERED, Trouble.SKIPPED})
#: What seldom finds something to be done with is drawn more often.
OF_REPLIES = (
    *(Trouble.CUT, Trouble.TRUNCATED, Trouble.DELAYED, Trouble.SWAPPED, Trouble.GARBLED, Trouble.ALTERED),
    *(Trouble.REPEATED, Trouble.REPEATED, Trouble.UNOBSERVED),
)
OF_EVENTS = (
    *(Trouble.CUT, Trouble.TRUNCATED, Trouble.DELAYED, Trouble.SWAPPED, Trouble.GARBLED, Trouble.ALTERED),
    *(Trouble.REPEATED, Trouble.REPEATED, *(Trouble.SKIPPED,) * 4, *(Trouble.UNOBSERVED,) * 3),
)
