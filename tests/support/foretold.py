"""What is told in the quarter of an hour before each night, minute by minute, and what then happened.

`python -m tests.support.foretold` lives a thousand nights on all cores, and prints how good the forecasts were.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from multiprocessing import Pool

from tests.support.night_pods import BUDGETS, PODS, bare_pod, budget
from tests.support.nights import LONGEST_S, SIZES, Nights, estate
from vgpuctl.reporting.outlook import Coming, News, Outlook, news, outlook

AHEAD_MIN = 15
MINUTE_S = 60.0
#: How many nights an estate has behind it before its forecasts count.
LEARNT = 6
REFUSED = 0.2
#: What is promised of a forecast's error.
MEDIAN, P90 = 0.10, 0.25
_REFUSED, _NO_LONGER = re.compile(r"will not begin on (\S+):"), re.compile(r"is no longer refused on (\S+)\.")


@dataclass(frozen=True, slots=True)
class Night:
    """`error`: how far the forecast at the announcement was from the real length, as a share of it.

    `cause`: what was put in the way, and `before_s`: when. `told_after_s`: how long after that it was told.
    """

    seed: int
    number: int
    error: float | None = None
    cause: str = ""
    before_s: float = 0.0
    told_after_s: float | None = None
    wrong: str = ""

    @property
    def late(self) -> bool:
        return self.told_after_s is not None and self.told_after_s > MINUTE_S


@dataclass
class _Evening:
    """The quarter of an hour before one start."""

    nights: Nights
    coming: Coming
    told: list[tuple[float, News]] = field(default_factory=list)
    last: Outlook | None = None

    def tick(self) -> Outlook:
        now = outlook(self.nights.ahead(self.coming.shift), self.coming)
        self.told += [(self.nights.world.clock.now_s, each) for each in news(self.last, now)]
        self.last = now
        return now

    def pass_by(self, cause: str, before_s: float) -> tuple[float, Callable[[], None]]:
        """Look each minute until the start. Return when the cause appeared, and what takes it away again."""
        clock, starts_s = self.nights.world.clock, self.nights.world.clock.now_s + MINUTE_S * AHEAD_MIN
        appears_s, undo = starts_s - before_s, _nothing
        for minute in range(1, AHEAD_MIN + 1):
            ends_s = starts_s - MINUTE_S * (AHEAD_MIN - minute)
            if cause and clock.now_s <= appears_s < ends_s:
                self.nights.wait(appears_s - clock.now_s)
                undo = CAUSES[cause](self.nights)
            self.nights.wait(ends_s - clock.now_s)
            if minute < AHEAD_MIN:
                self.tick()
        return appears_s, undo

    def told_after_s(self, appeared_s: float) -> float | None:
        """Return how long after its cause the first refusal was told."""
        told = (when for when, each in self.told if _REFUSED.search(each.message) and when >= appeared_s)
        return next((when - appeared_s for when in told), None)

    def untold(self, refused: set[str]) -> list[str]:
        """Return hosts that were refused and not foretold, or foretold and not refused."""
        foretold = set[str]()
        for _, each in self.told:
            if found := _REFUSED.search(each.message):
                foretold.add(found[1])
            elif found := _NO_LONGER.search(each.message):
                foretold.discard(found[1])
        missed, false = sorted(refused - foretold), sorted(foretold - refused)
        return [f"{host} was refused without a word" for host in missed] + [f"{host} was not refused" for host in false]


def lived(seed: int, nights: int, sizes: Sequence[tuple[int, int]] = SIZES) -> list[Night]:
    """Return an estate's nights after those from which it learnt."""
    some = estate(seed, sizes)
    found = [_night(some, seed, number) for number in range(LEARNT + nights)]
    return found[LEARNT:]


def _night(nights: Nights, seed: int, number: int) -> Night:
    nights.daybreak()
    cause, before_s = _drawn_cause(nights)
    start = nights.world.clock.utc() + timedelta(minutes=AHEAD_MIN)
    evening = _Evening(nights, Coming(timetable="day-night", shift="night", start=start))
    first = evening.tick()
    appeared_s, undo = evening.pass_by(cause, before_s)
    entries = len(nights.history)
    decision = nights.switch("night", until_s=LONGEST_S)
    wrong = [*nights.broken, *evening.untold({refusal.host for refusal in nights.refusals})]
    wrong += [] if decision.finished else ["it did not finish"]
    error = None
    # A host that goes back has not done what was forecast.
    if not cause and len(nights.history) > entries and not decision.state.gave_up:
        real_s = nights.history[-1].seconds
        error = abs(first.length_s - real_s) / real_s
    undo()
    nights.switch("day", until_s=LONGEST_S)
    told_after_s = evening.told_after_s(appeared_s) if cause else None
    return Night(seed, number, error, cause, before_s, told_after_s, "; ".join(wrong))


def _drawn_cause(nights: Nights) -> tuple[str, float]:
    """Return what will be in the way, and how long before the start it appears; "" on most nights.

    It never appears in the last minute, since the last look ahead may be over by then.
    """
    if nights.chance.random() >= REFUSED:
        return "", 0.0
    return nights.chance.choice(list(CAUSES)), nights.chance.uniform(MINUTE_S + 1, MINUTE_S * AHEAD_MIN - 1)


def _nothing() -> None: ...


def _a_bare_pod(nights: Nights) -> Callable[[], None]:
    node = nights.chance.choice(sorted(nights.awake()))
    nights.kubectl("POST", PODS, bare_pod("anna", node))
    return lambda: _delete(nights, f"{PODS}/anna")


def _a_second_budget(nights: Nights) -> Callable[[], None]:
    """Two budgets over one pod: the API server evicts it for nobody."""
    kind = nights.kinds[0]
    if kind.most_out is None:
        nights.kubectl("POST", BUDGETS, budget("first", kind.name, 1))
    nights.kubectl("POST", BUDGETS, budget("second", kind.name, 1))

    def undo() -> None:
        for name in ("first", "second"):
            _delete(nights, f"{BUDGETS}/{name}")

    return undo


def _a_dead_end(nights: Nights) -> Callable[[], None]:
    """A budget that lets none of its pods go."""
    nights.kubectl("POST", BUDGETS, budget("never", nights.kinds[0].name, 0))
    return lambda: _delete(nights, f"{BUDGETS}/never")


def _delete(nights: Nights, path: str) -> None:
    if nights.world.kubernetes.store.get(path.split("/")[-2], "default", path.rsplit("/", maxsplit=1)[-1]):
        nights.kubectl("DELETE", path)


CAUSES: dict[str, Callable[[Nights], Callable[[], None]]] = {
    "a bare pod": _a_bare_pod,
    "a second budget": _a_second_budget,
    "a dead end": _a_dead_end,
}


@dataclass(frozen=True, slots=True)
class Account:
    """Many nights together. `errors`: sorted."""

    errors: tuple[float, ...]
    foretold_s: tuple[float, ...]
    wrong: tuple[str, ...]

    @classmethod
    def of(cls, nights: list[Night]) -> Account:
        wrong = [f"seed {each.seed}, night {each.number}: {each.wrong}" for each in nights if each.wrong]
        late = [f"seed {each.seed}, night {each.number}: {each.cause} told late" for each in nights if each.late]
        told = sorted(each.told_after_s for each in nights if each.told_after_s is not None)
        errors = sorted(each.error for each in nights if each.error is not None)
        return cls(tuple(errors), tuple(told), (*wrong, *late))

    def error(self, share: float) -> float:
        """Return the error that this share of the nights does not exceed."""
        return self.errors[min(len(self.errors) - 1, int(share * len(self.errors)))]

    def __str__(self) -> str:
        shown = ", ".join(f"p{share * 100:.0f} {self.error(share):.1%}" for share in (0.5, 0.75, 0.9, 0.99))
        latest = f", the latest after {max(self.foretold_s):.0f} s" if self.foretold_s else ""
        told = f"{len(self.foretold_s)} causes told{latest}"
        return f"{len(self.errors)} forecasts: {shown}; {told}; {len(self.wrong)} wrong"


def main() -> int:
    words = argparse.ArgumentParser(prog="python -m tests.support.foretold", description=__doc__)
    words.add_argument("--first", type=int, default=1)
    words.add_argument("--estates", type=int, default=50)
    words.add_argument("--nights", type=int, default=20)
    given = words.parse_args()
    seeds = range(given.first, given.first + given.estates)
    with Pool(os.cpu_count()) as pool:
        lives = pool.map(partial(lived, nights=given.nights), seeds, chunksize=1)
    account = Account.of([night for nights in lives for night in nights])
    print("\n".join((*account.wrong, str(account))))
    return 0 if not account.wrong and account.error(0.5) <= MEDIAN and account.error(0.9) <= P90 else 1


if __name__ == "__main__":
    sys.exit(main())
