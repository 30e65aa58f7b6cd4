"""Sentences that say what a step waits for."""

from __future__ import annotations

from vgpuctl.model.wait import Reason, Wait

SENTENCES = {
    Reason.UNDER_WAY: "",
    Reason.PODS: "{0} to go{1}",
    Reason.POD_OF_WORKLOAD: "{0} ends with {1}",
    Reason.POD_NOT_ALLOWED: "{0}",
    Reason.BUDGET: "{0} waits for budget {1}",
    Reason.SEVERAL_BUDGETS: "{0}",
    Reason.NODE_GONE: "its node is gone, so nothing shows whether pods run on it",
    Reason.VOLUME: "volume {0}{1} still attached",
    Reason.GUEST: "its guest shuts down",
    Reason.NOT_BACK: "{0}",
    Reason.SIZE: "its {0} is no number: scale it yourself, and take that annotation off",
    Reason.UNHEARD: "{0}",
    Reason.DOUBT: "{0}",
    Reason.VCENTER_TASK: "vCenter is at work on it ({0})",
    Reason.EARLIER_REQUEST: "an earlier request is still out",
    Reason.ABOUT_TO_STOP: "it is about to stop",
    Reason.THROTTLED: "Kubernetes asks to wait {0} s",
    Reason.TURN: "its turn: {0} of {1} are being suspended on {2} {3}",
    Reason.CARD: "waits for the card",
    Reason.LAST_START: "waits until the last start shows its card",
    Reason.ADMISSION: "waits until others in its cluster have left: HA admission control counts them",
    Reason.LAW: "{0}",
}
#: In the journal, what held a step up is named without the step that waits for it.
_HOLDERS = {
    Reason.BUDGET: "budget {1}",
    Reason.CARD: "the card",
}
#: Waits that are part of the step itself: it is at work.
_AT_WORK = {Reason.UNDER_WAY, Reason.PODS, Reason.GUEST, Reason.VCENTER_TASK, Reason.ABOUT_TO_STOP}


def sentence(wait: Wait) -> str:
    """Return what the step waits for; "" if nothing holds it up."""
    return SENTENCES[wait.reason].format(*wait.details)


def holder(wait: Wait) -> str:
    """Return what holds the step up, as the journal names it; "" while the step is at work."""
    if wait.reason in _AT_WORK:
        return ""
    return _HOLDERS.get(wait.reason, SENTENCES[wait.reason]).format(*wait.details)
