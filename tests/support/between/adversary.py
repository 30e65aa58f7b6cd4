"""One integer, one adversary: what happens to each reply and each event on its way follows from its seed."""

from __future__ import annotations

import random
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator

from tests.support.between import damage
from tests.support.between.events import Event, Window
from tests.support.between.messages import KUBERNETES, LAST_CHUNK, WATCH_HEAD, Asked, Lines, Reply, chunk
from tests.support.between.troubles import LIES, OF_EVENTS, OF_REPLIES, Trouble

Answer = Callable[[Asked], Reply | Lines]
#: How many earlier replies of each request may be repeated.
KEPT = 4
#: How long events are held to be shown as one, and how long a watch without any is listened to at once.
WINDOW_S, LONG_S = 0.005, 1.0
#: Requests whose replies show the state of many objects.
_STATES = ("WaitForUpdatesEx", "GET ")


class HangUp(Exception):  # noqa: N818
    """The connection ends here, although more was to come."""


class Adversary:
    """Stands between the product and both servers. `counts`: what it did, by kind. `lies`: it may lie.

    A lie is right in form, so that no client finds it out.

    `lied_to_vcenters_client`: a lie is not healed yet that only a new session heals.
    """

    def __init__(self, seed: int, *, lies: bool = True) -> None:
        self._seed = seed
        self._resting = threading.Event()
        #: A while, unless the adversary rests meanwhile.
        self.pause: Callable[[float], object] = self._resting.wait
        self._lock = threading.Lock()
        self._asked_before: Counter[str] = Counter()
        self._replies: dict[str, deque[Reply]] = {}
        self._told: dict[str, deque[Event]] = {}
        self._lied_about: set[str] = set()
        self.lied_to_vcenters_client = False
        self.counts: Counter[Trouble] = Counter()
        chance = random.Random(f"adversary {seed}")
        self.rate = chance.choice([0.08, 0.15, 0.3])
        self._longest_s = chance.choice([0.001, 0.005, 0.02])
        self._excluded: frozenset[Trouble] = frozenset() if lies else LIES

    @property
    def resting(self) -> bool:
        return self._resting.is_set()

    def rest(self) -> None:
        """From now on each reply passes as it is. A watch that was lied to ends, as after a compaction."""
        # A lie after this would not be healed.
        with self._lock:
            self._resting.set()

    def carried(self, asked: Asked, answer: Answer) -> Iterator[bytes]:
        """What reaches the client of the server's answer. HangUp: then the connection ends."""
        chance = self._chance(asked)
        if asked.is_watch:
            yield from self._watched(asked, answer, chance)
            return
        trouble = self._drawn(chance, OF_REPLIES)
        if trouble is Trouble.CUT and chance.random() < 0.3:
            self._count(trouble)
            raise HangUp
        if trouble is Trouble.UNOBSERVED and asked.what.startswith(_STATES):
            # What changes meanwhile arrives together, so the states in between are never shown.
            self._count(trouble)
            self._pause(chance)
        reply = answer(asked)
        assert isinstance(reply, Reply)
        if self.resting:
            # It was drawn before the server was waited for.
            trouble = None
        self._remember(asked, reply)
        yield from self._damaged(asked, reply, trouble, chance)

    def _damaged(self, asked: Asked, reply: Reply, trouble: Trouble | None, chance: random.Random) -> Iterator[bytes]:
        match trouble:
            case Trouble.CUT:
                self._count(trouble)
                raise HangUp
            case Trouble.TRUNCATED if reply.body:
                self._count(trouble)
                rest = reply.body[: chance.randrange(len(reply.body))]
                yield reply.head(len(rest) if chance.random() < 0.5 else None) + rest
                raise HangUp
            case Trouble.DELAYED:
                self._count(trouble)
                yield reply.head()
                self._pause(chance)
                yield reply.body
                return
            case Trouble.REPEATED | Trouble.SWAPPED:
                reply = self._another(asked, reply, trouble, chance)
            case Trouble.GARBLED | Trouble.ALTERED if reply.body and not reply.error:
                reply = self._changed(asked, reply, trouble, chance)
        yield reply.head() + reply.body

    def _another(self, asked: Asked, reply: Reply, trouble: Trouble, chance: random.Random) -> Reply:
        """An earlier reply of the same request, or the last one of another request."""
        with self._lock:
            same = trouble is Trouble.REPEATED
            mine = f"{asked.server} {asked.what}"
            others = sorted(what for what in self._replies if what.startswith(f"{asked.server} ") and what != mine)
            earlier = [list(self._replies.get(mine, ()))[:-1]] if same else [list(self._replies[w]) for w in others]
            found = [chance.choice(each) for each in earlier if each]
        if not found or reply.error:
            return reply
        other = chance.choice(found)
        is_stale = same and asked.what.startswith(_STATES)
        self._count(Trouble.STALE if is_stale else trouble)
        return other

    def _changed(self, asked: Asked, reply: Reply, trouble: Trouble, chance: random.Random) -> Reply:
        change = damage.broken if trouble is Trouble.GARBLED else damage.altered
        body = change(reply.body, chance)
        if damage.is_readable(body):
            if not self._lies(asked):
                return reply
            trouble = Trouble.ALTERED
        self._count(trouble)
        return Reply(reply.status, body, reply.headers)

    def _watched(self, asked: Asked, answer: Answer, chance: random.Random) -> Iterator[bytes]:
        if self._drawn(chance, (Trouble.CUT,)):
            self._count(Trouble.CUT)
            raise HangUp
        found = answer(asked)
        if isinstance(found, Reply):
            yield found.head() + found.body
            return
        yield WATCH_HEAD
        try:
            yield from self._events(asked, found)
        finally:
            found.close()

    def _events(self, asked: Asked, lines: Lines) -> Iterator[bytes]:
        window = Window()
        while (taken := lines.take(WINDOW_S if window.is_open else LONG_S)) is not None:
            if self.resting and self._was_lied_about(asked):
                yield chunk(Event.gone().line) + LAST_CHUNK
                return
            if not taken or self.resting:
                # Nothing more came for a moment, so what was held is shown as it is now.
                yield chunk(b"".join((*window.shut(), *taken)))
                continue
            for line in taken:
                yield from self._event(asked, Event(line), window)
        yield chunk(b"".join(window.shut())) + LAST_CHUNK

    def _event(self, asked: Asked, event: Event, window: Window) -> Iterator[bytes]:
        chance = self._chance(asked)
        trouble = None if window.is_open else self._drawn(chance, OF_EVENTS)
        if trouble is Trouble.UNOBSERVED:
            window.open()
        if window.is_open:
            if window.takes(event):
                self._count(Trouble.UNOBSERVED)
        elif trouble:
            yield from self._meddled(asked, event, trouble, chance)
        else:
            yield chunk(event.line)
            self._tell(asked, event)

    def _meddled(self, asked: Asked, event: Event, trouble: Trouble, chance: random.Random) -> Iterator[bytes]:
        match trouble:
            case Trouble.CUT:
                self._count(trouble)
                raise HangUp
            case Trouble.TRUNCATED:
                self._count(trouble)
                yield chunk(event.line[: chance.randrange(1, len(event.line) - 1)])
                if chance.random() < 0.5:
                    yield LAST_CHUNK
                raise HangUp
            case Trouble.DELAYED:
                self._count(trouble)
                yield chunk(event.line[:10])
                self._pause(chance)
                yield chunk(event.line[10:])
            case Trouble.REPEATED | Trouble.SWAPPED:
                yield chunk(event.line)
                yield from map(chunk, self._other_event(asked, trouble, chance))
            case Trouble.GARBLED | Trouble.ALTERED:
                # The line's end stays: without it, no client can know before the next event that one has come.
                changed = self._changed(asked, Reply(200, event.line.rstrip()), trouble, chance)
                yield chunk(changed.body + b"\n")
            case Trouble.SKIPPED if self._lies(asked):
                self._count(trouble)
            case _:
                yield chunk(event.line)
        self._tell(asked, event)

    def _other_event(self, asked: Asked, trouble: Trouble, chance: random.Random) -> Iterator[bytes]:
        """An earlier event of this watch, or the last one of another kind's."""
        with self._lock:
            same = trouble is Trouble.REPEATED
            found = [chance.choice(told) for what, told in self._told.items() if told and (what == asked.what) is same]
        if found:
            self._count(trouble)
            yield chance.choice(found).line

    def _chance(self, asked: Asked) -> random.Random:
        with self._lock:
            self._asked_before[f"{asked.server} {asked.what}"] += 1
            return random.Random(f"{self._seed} {asked.what} {self._asked_before[f'{asked.server} {asked.what}']}")

    def _drawn(self, chance: random.Random, troubles: tuple[Trouble, ...]) -> Trouble | None:
        if self.resting or chance.random() >= self.rate:
            return None
        return chance.choice([each for each in troubles if each not in self._excluded])

    def _pause(self, chance: random.Random) -> None:
        self.pause(chance.uniform(0.0, self._longest_s))

    def _count(self, trouble: Trouble) -> None:
        with self._lock:
            self.counts[trouble] += 1

    def _lies(self, asked: Asked) -> bool:
        """True if a lie about this may be told now; it is noted, to be healed."""
        with self._lock:
            if self._excluded >= LIES or self.resting:
                return False
            self._lied_about.add(asked.path)
            self.lied_to_vcenters_client |= asked.server != KUBERNETES
            return True

    def _was_lied_about(self, asked: Asked) -> bool:
        with self._lock:
            was = asked.path in self._lied_about
            self._lied_about.discard(asked.path)
            return was

    def _remember(self, asked: Asked, reply: Reply) -> None:
        # A refusal is no answer to another request: the product would take it for a right that it lacks.
        if not reply.error:
            with self._lock:
                self._replies.setdefault(f"{asked.server} {asked.what}", deque(maxlen=KEPT)).append(reply)

    def _tell(self, asked: Asked, event: Event) -> None:
        with self._lock:
            self._told.setdefault(asked.what, deque(maxlen=KEPT)).append(event)
