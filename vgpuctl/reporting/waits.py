"""Sentences that say what a step waits for."""

from __future__ import annotations

from typing import NamedTuple

from vgpuctl.model.wait import Reason, Wait

#: How long a wait lasts before a log reports it. A GPU stack may take minutes to come back.
LONG_S = 30.0


class Phrase(NamedTuple):
    """What is said of one reason to wait.

    `sentence`: what the step waits for; `{0}` is the first detail of the wait. A reason whose sentence is `{0}` alone
    brings it along: those of NOT_BACK are in `planning/steps/returning.py`. `holder`: how the journal names what holds
    the step up, if that is not the sentence. `at_work`: the wait is part of the step itself. `reported_after_s`: when a
    log reports the wait; at once where something else must change before the step goes on.
    """

    sentence: str
    holder: str = ""
    at_work: bool = False
    reported_after_s: float = LONG_S


PHRASES = {
    Reason.UNDER_WAY: Phrase("", at_work=True),
    Reason.PODS: Phrase("{0} to go{1}", at_work=True),
    Reason.POD_OF_WORKLOAD: Phrase("{0} ends with {1}"),
    Reason.POD_NOT_ALLOWED: Phrase("{0}"),
    Reason.BUDGET: Phrase("{0} waits for budget {1}", holder="budget {1}", reported_after_s=0.0),
    Reason.SEVERAL_BUDGETS: Phrase("{0}", reported_after_s=0.0),
    Reason.NODE_GONE: Phrase("its node is gone, so nothing shows whether pods run on it"),
    Reason.VOLUME: Phrase("volume {0}{1} still attached"),
    Reason.GUEST: Phrase("its guest shuts down", at_work=True),
    Reason.NOT_BACK: Phrase("{0}"),
    Reason.SIZE: Phrase("its {0} is no number: scale it yourself, and take that annotation off"),
    Reason.UNHEARD: Phrase("{0}", reported_after_s=0.0),
    Reason.DOUBT: Phrase("{0}"),
    Reason.VCENTER_TASK: Phrase("vCenter is at work on it ({0})", at_work=True),
    Reason.EARLIER_REQUEST: Phrase("an earlier request is still out"),
    Reason.ABOUT_TO_STOP: Phrase("it is about to stop", at_work=True),
    Reason.THROTTLED: Phrase("Kubernetes asks to wait {0} s", reported_after_s=0.0),
    Reason.TURN: Phrase("its turn: {0} of {1} are being suspended on {2} {3}"),
    Reason.CARD: Phrase("waits for the card", holder="the card"),
    Reason.LAST_START: Phrase("waits until the last start shows its card"),
    Reason.ADMISSION: Phrase("waits until others in its cluster have left: HA admission control counts them"),
    Reason.LAW: Phrase("{0}"),
}


def sentence(wait: Wait) -> str:
    """Return what the step waits for; "" if nothing holds it up."""
    return PHRASES[wait.reason].sentence.format(*wait.details)


def holder(wait: Wait) -> str:
    """Return what holds the step up, as the journal names it; "" while the step is at work."""
    phrase = PHRASES[wait.reason]
    return "" if phrase.at_work else (phrase.holder or phrase.sentence).format(*wait.details)


def holds_up(reason: str) -> bool:
    """True if the journal names the thing that holds a step up, for an entry's word of the reason."""
    return any(phrase.holder for kind, phrase in PHRASES.items() if kind.value == reason)
