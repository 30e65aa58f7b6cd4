"""What can be asked of the simulators while they run. Each method takes a document and gives one back."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from vgpuctl.sim.control.rules import NotUnderstood, document, rule_of
from vgpuctl.sim.driver import Driver
from vgpuctl.sim.faults import How, StandingFault
from vgpuctl.sim.people import NotDone
from vgpuctl.sim.words import duration_called, nearest
from vgpuctl.sim.world import World

Document = dict[str, Any]
Thing = TypeVar("Thing")
LONGEST_LEAP_S = 31 * 24 * 3600.0


class Outside(Protocol):
    """The servers around a world."""

    def look_at_doors(self) -> None:
        """A server may have gone down or come back."""

    def reset(self) -> None:
        """Begin again with a new world."""


class ControlApi:
    def __init__(self, world: World, driver: Driver, outside: Outside) -> None:
        self._world = world
        self._driver = driver
        self._outside = outside

    def process(self, _: Document) -> Document:
        """Whoever reads a number in the folder can ask here whether it is ours."""
        return {"pid": os.getpid()}

    def reset(self, _: Document) -> Document:
        self._outside.reset()
        return {}

    def calls(self, _: Document) -> Document:
        return dict(self._world.calls.as_dict())

    def reset_calls(self, _: Document) -> Document:
        counted = dict(self._world.calls.as_dict())
        self._world.calls.reset()
        return counted

    def faults(self, _: Document) -> Document:
        return {"faults": [document(standing) for standing in self._world.calls.faults]}

    def add_fault(self, asked: Document) -> Document:
        rule = rule_of(asked)
        if rule.effect.how is How.PERSON:
            self._world.people.check(rule.effect.what)
        standing = self._world.calls.faults.add(rule)
        if lasts_s := rule.effect.seconds if rule.effect.how is How.DOWN else float(asked.get("lasts") or 0):
            self._world.clock.after(lasts_s, lambda: self._clear(standing))
        self._outside.look_at_doors()
        return document(standing)

    def clear_faults(self, asked: Document) -> Document:
        """All of them, or those whose ids are told."""
        standing = {each.id: each for each in self._world.calls.faults}
        ids = asked.get("ids") or list(standing)
        if unknown := [id for id in ids if id not in standing]:
            raise NotUnderstood(f"no fault has the number {', '.join(unknown)}")
        for id in ids:
            self._clear(standing[id])
        return {"cleared": ids}

    def clock(self, _: Document) -> Document:
        clock = self._world.clock
        return {"now": clock.utc().isoformat(), "seconds": clock.now_s, "frozen": self._driver.frozen}

    def set_clock(self, asked: Document) -> Document:
        match asked.get("do"):
            case "freeze":
                self._driver.freeze()
            case "run":
                self._driver.run()
            case "advance":
                self._advance(float(asked["seconds"]))
            case other:
                raise NotUnderstood(f"a clock can freeze, run and advance, not {other!r}")
        return self.clock({})

    def durations(self, _: Document) -> Document:
        found = dataclasses.asdict(self._world.durations)
        return {name: value for name, value in found.items() if name.endswith("_s") or name == "tasks_per_host"}

    def set_durations(self, asked: Document) -> Document:
        """They hold for whatever begins from now on."""
        known = self.durations({})
        if unknown := sorted(asked.keys() - known.keys()):
            names, there = (sorted(map(duration_called, some)) for some in (unknown, known))
            raise NotUnderstood(f"no duration is called {', '.join(names)}; there are: {', '.join(there)}")
        for name, value in asked.items():
            if value is not None and not 0 <= float(value) <= LONGEST_LEAP_S:
                raise NotUnderstood(f"{duration_called(name)} cannot be {value}")
        for name, value in asked.items():
            setattr(self._world.durations, name, None if value is None else float(value))
        return self.durations({})

    def send_person(self, asked: Document) -> Document:
        """Now, or after a while: then nobody is there to read what went wrong, as in life."""
        people, act = self._world.people, str(asked.get("act", ""))
        people.check(act)
        in_s = float(asked.get("in") or 0)
        if in_s:
            self._world.clock.after(in_s, lambda: _tried(people.act, act))
        else:
            people.act(act)
        return {"act": act, "in": in_s}

    def set_vm(self, asked: Document) -> Document:
        estate = self._world.estate
        vm = _named(estate.vms, asked, "VM")
        if "question" in asked:
            estate.ask(vm, str(asked["question"]))
        if "tools" in asked:
            estate.set_tools(vm, bool(asked["tools"]))
        if "answer" in asked:
            estate.answer(vm, str(asked["answer"]))
        return {"name": vm.name, "question": vm.asks, "tools": vm.tools}

    def set_host(self, asked: Document) -> Document:
        estate = self._world.estate
        host = _named(estate.hosts, asked, "host")
        estate.set_maintenance(host, bool(asked["maintenance"]))
        return {"name": host.name, "maintenance": bool(asked["maintenance"])}

    def _advance(self, seconds: float) -> None:
        if not 0 < seconds <= LONGEST_LEAP_S:
            raise NotUnderstood("the clock only goes forward, by a month at most")
        self._driver.advance(seconds)

    def _clear(self, standing: StandingFault) -> None:
        self._world.calls.faults.clear(standing.id)
        if standing.rule.effect.how is How.TASK_HANGS:
            self._world.estate.work.let_go()
        self._outside.look_at_doors()


def _named(known: Mapping[str, Thing], asked: Document, kind: str) -> Thing:
    name = str(asked.get("name", ""))
    if name not in known:
        raise NotUnderstood(f"there is no {kind} {name}{nearest(name, known)}")
    return known[name]


def _tried(act: Callable[[str], None], sentence: str) -> None:
    try:
        act(sentence)
    except NotDone as error:
        print(f"A person could not {sentence}: {error}", flush=True)  # into the folder's log
