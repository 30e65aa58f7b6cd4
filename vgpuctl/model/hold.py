"""A person's hold on a worker: annotations of its node, which kubectl can set too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from vgpuctl.basics import bounded
from vgpuctl.basics.bounded import UnreadableError
from vgpuctl.model.record import PREFIX

HOLD = PREFIX + "hold"
UNTIL, BY, WHY, SINCE = (f"{HOLD}-{part}" for part in ("until", "by", "why", "since"))
HOLD_ANNOTATIONS = (HOLD, UNTIL, BY, WHY, SINCE)
#: Values that hold nothing. Any other value holds: kubectl users may write `true`, `yes` or a reason.
_NOT_HELD = (None, "", "false")
LONGEST_NAME, LONGEST_REASON = 256, 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """What a node's annotations say about its hold.

    `who`, `reason`: "" if they do not say it. `since`: as servers write times. `until`: None if it has no end, or if
    its end cannot be read; then `unreadable` says why.
    """

    who: str = ""
    since: str = ""
    until: datetime | None = None
    reason: str = ""
    unreadable: str = ""

    def active(self, now: datetime) -> bool:
        return self.until is None or now < self.until

    def phrase(self, until: str) -> str:
        """Return `held by anna until 18:00 (driver test)`. `until`: its end in the reader's words."""
        return order_phrase("held", self.who, until, self.reason)


def order_phrase(word: str, who: str, until: str, reason: str) -> str:
    """Return a word with the person behind it, its end and its reason, as far as they are known."""
    parts = (word, f"by {who}" if who else "", f"until {until}" if until else "", f"({reason})" if reason else "")
    return " ".join(filter(None, parts))


def read_hold(annotations: Mapping[str, str]) -> Hold | None:
    """Return the hold that a node bears; None if it bears none.

    It never raises. A hold that a person wrote badly is still a hold, and one without an end is the safe reading.
    """
    if annotations.get(HOLD) in _NOT_HELD:
        return None
    until, unreadable = _end(annotations)
    return Hold(
        who=_line(annotations.get(BY), LONGEST_NAME),
        since=_line(annotations.get(SINCE), bounded.LONGEST_TIME),
        until=until,
        reason=_line(annotations.get(WHY), LONGEST_REASON),
        unreadable=unreadable,
    )


def hold_annotations(hold: Hold | None) -> dict[str, str | None]:
    """Return the annotations that write this hold, or that take all of a hold off again."""
    if hold is None:
        return dict.fromkeys(HOLD_ANNOTATIONS)
    return {
        HOLD: "true",
        UNTIL: hold.until.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if hold.until else None,
        BY: hold.who or None,
        WHY: hold.reason or None,
        SINCE: hold.since or None,
    }


def _end(annotations: Mapping[str, str]) -> tuple[datetime | None, str]:
    written = annotations.get(UNTIL)
    if not written:
        return None, ""
    try:
        return bounded.time(written, UNTIL), ""
    except UnreadableError as error:
        return None, str(error)


def _line(text: object, longest: int) -> str:
    """Return one line of bounded length: other programs and people write these annotations."""
    return bounded.cut(" ".join(text.split()) if isinstance(text, str) else "", longest)
