"""What the control can do to running simulators. Each method takes a JSON document and returns one."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from vgpuctl.sim.control.fault_rules import InvalidRequest, as_document, rule_of
from vgpuctl.sim.driver import Driver
from vgpuctl.sim.faults import ActiveFault, How
from vgpuctl.sim.inventory import CLOCKS, LEAST_HEARTBEAT_S
from vgpuctl.sim.vcenter.physics.records import Software, Vm
from vgpuctl.sim.words import duration_name, nearest
from vgpuctl.sim.world import World

Document = dict[str, Any]
Found = TypeVar("Found")
MAX_ADVANCE_S = 31 * 24 * 3600.0
HOST_ACTS = ("crash", "disconnect", "not-responding", "connect")


class Servers(Protocol):
    """The servers around a world, as far as the control changes them."""

    def apply_down_faults(self) -> None:
        """Close the port of each server that a fault takes down; open the others."""

    def reset(self) -> None:
        """Begin again with a new world."""


class ControlApi:
    def __init__(self, world: World, driver: Driver, servers: Servers) -> None:
        self._world = world
        self._driver = driver
        self._servers = servers

    def process(self, _: Document) -> Document:
        """Return the process's number. A client that read a number in the folder can check here that it is this
        process.
        """
        return {"pid": os.getpid()}

    def reset(self, _: Document) -> Document:
        self._servers.reset()
        return {}

    def calls(self, _: Document) -> Document:
        return dict(self._world.calls.as_dict())

    def reset_calls(self, _: Document) -> Document:
        counted = dict(self._world.calls.as_dict())
        self._world.calls.reset()
        return counted

    def faults(self, _: Document) -> Document:
        return {"faults": [as_document(fault) for fault in self._world.calls.faults]}

    def add_fault(self, request: Document) -> Document:
        rule = rule_of(request)
        if rule.effect.how is How.PERSON:
            # Checked now: when the person acts, no client waits for an error.
            self._world.people.check(rule.effect.what)
        fault = self._world.calls.faults.add(rule)
        if duration_s := rule.effect.seconds if rule.effect.how is How.DOWN else float(request.get("lasts") or 0):
            self._world.clock.after(duration_s, lambda: self._clear(fault))
        self._servers.apply_down_faults()
        return as_document(fault)

    def clear_faults(self, request: Document) -> Document:
        """Clear all faults, or only those with the given ids."""
        fault = {each.id: each for each in self._world.calls.faults}
        ids = request.get("ids") or list(fault)
        if unknown := [id for id in ids if id not in fault]:
            raise InvalidRequest(f"no fault has the number {', '.join(unknown)}")
        for id in ids:
            self._clear(fault[id])
        return {"cleared": ids}

    def clock(self, _: Document) -> Document:
        clock = self._world.clock
        return {"now": clock.utc().isoformat(), "seconds": clock.now_s, "frozen": self._driver.frozen}

    def set_clock(self, request: Document) -> Document:
        match request.get("do"):
            case "freeze":
                self._driver.freeze()
            case "run":
                self._driver.run()
            case "advance":
                self._advance(float(request["seconds"]))
            case other:
                raise InvalidRequest(f"the clock can freeze, run and advance, not {other!r}")
        return self.clock({})

    def durations(self, _: Document) -> Document:
        found = dataclasses.asdict(self._world.durations)
        return {name: value for name, value in found.items() if name.endswith("_s") or name == "tasks_per_host"}

    def set_durations(self, request: Document) -> Document:
        """Change durations. They hold for what begins from now on."""
        known = self.durations({})
        if unknown := sorted(request.keys() - known.keys()):
            names, there = (sorted(map(duration_name, some)) for some in (unknown, known))
            raise InvalidRequest(f"no duration is called {', '.join(names)}; there are: {', '.join(there)}")
        for name, value in request.items():
            _check_duration(name, value)
        for name, value in request.items():
            setattr(self._world.durations, name, None if value is None else float(value))
        return self.durations({})

    def send_person(self, request: Document) -> Document:
        """Let a person act now, or after a while. A later act that fails is only logged: no client waits for its
        result.
        """
        people, act = self._world.people, str(request.get("act", ""))
        people.check(act)
        in_s = float(request.get("in") or 0)
        if in_s:
            self._world.clock.after(in_s, lambda: people.act_or_log(act))
        else:
            people.act(act)
        return {"act": act, "in": in_s}

    def set_vm(self, request: Document) -> Document:
        estate = self._world.estate
        vm = _find(estate.vms, request, "VM")
        if "question" in request:
            estate.set_question(vm, str(request["question"]))
        if "tools" in request:
            estate.set_tools(vm, bool(request["tools"]))
        if "answer" in request:
            estate.answer(vm, str(request["answer"]))
        if "clock" in request:
            self._set_clock_of(vm, str(request["clock"]))
        shown: Document = {"name": vm.name, "question": vm.power_on_question, "tools": vm.tools}
        if vm.spec.has_node:
            shown["clock"] = self._world.kubernetes.kubelets[vm.guest].clock_set_by
        # No property of vCenter has it: only a probe in the guest (`nvidia-smi -q`) shows a licence.
        if licence := estate.licences.status(vm):
            shown["licence"] = licence
        return shown

    def set_host(self, request: Document) -> Document:
        estate = self._world.estate
        host = _find(estate.hosts, request, "host")
        if act := str(request.get("act", "")):
            if act not in HOST_ACTS:
                raise InvalidRequest(f"a host can {', '.join(HOST_ACTS)}, not {act!r}")
            self._world.people.act(f"{act} {host.name}")
        if "maintenance" in request:
            estate.set_maintenance(host, bool(request["maintenance"]))
        if installed := {key: str(request[key]) for key in Software._fields if request.get(key)}:
            estate.patch(host, host.software._replace(**installed))
        shown = {"name": host.name, "maintenance": host.in_maintenance, "connection": host.connection.value}
        return shown | host.software._asdict()

    def _set_clock_of(self, vm: Vm, how: str) -> None:
        if how not in CLOCKS:
            raise InvalidRequest(f"a guest's clock is set by {', '.join(CLOCKS)}, not {how!r}")
        if not vm.spec.has_node:
            raise InvalidRequest(f"{vm.name} has no node, so its clock is not simulated")
        self._world.kubernetes.kubelets[vm.guest].set_clock_by(how)

    def _advance(self, seconds: float) -> None:
        if not 0 < seconds <= MAX_ADVANCE_S:
            raise InvalidRequest("the clock only goes forward, by at most 31 days")
        self._driver.advance(seconds)

    def _clear(self, fault: ActiveFault) -> None:
        self._world.calls.faults.clear(fault.id)
        if fault.rule.effect.how is How.TASK_HANGS:
            # Decision 0006: a hung task is a fault of its call, so it ends with the fault.
            self._world.estate.work.release_hung()
        self._servers.apply_down_faults()


def _find(known: Mapping[str, Found], request: Document, kind: str) -> Found:
    name = str(request.get("name", ""))
    if name not in known:
        raise InvalidRequest(f"there is no {kind} {name}{nearest(name, known)}")
    return known[name]


def _check_duration(name: str, value: Any) -> None:
    """Only the datastore's throughput may be unset: then a suspend takes its usual time."""
    if value is None and name == "store_mib_per_s":
        return
    least = LEAST_HEARTBEAT_S if name == "heartbeat_s" else 0.0
    if value is None or not least <= float(value) <= MAX_ADVANCE_S:
        raise InvalidRequest(f"{duration_name(name)} must be from {least:.0f} to {MAX_ADVANCE_S:.0f}, not {value}")
