"""People who act while a tool is at work: they power and move VMs, cordon, label and delete, through the servers' usual
APIs. Hosts fail by their word, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from vgpuctl.sim.kube.api.api import Api
from vgpuctl.sim.kube.api.errors import ApiError
from vgpuctl.sim.kube.api.patches import MERGE
from vgpuctl.sim.kube.api.request import Reply, Request
from vgpuctl.sim.kube.objects import name_of
from vgpuctl.sim.vcenter.physics.estate import Estate
from vgpuctl.sim.vcenter.physics.records import Host, Vm
from vgpuctl.sim.vcenter.physics.refusals import Refusal
from vgpuctl.sim.words import nearest

_ON_NODES = ("cordon", "uncordon", "label", "delete-node")
_WITH_TWO_WORDS = {"label": "a node and key=value", "move": "a VM and a host"}


class NotDone(Exception):  # noqa: N818
    """A person was asked for something that cannot be done. Its text is shown to a person."""


class People:
    """`act` takes a sentence of two or three words, such as `cordon worker-1`."""

    def __init__(self, estate: Estate, api: Api) -> None:
        self._estate = estate
        self._api = api
        self._acts: dict[str, Callable[..., None]] = {
            # People use the servers' usual ways, so what they do is checked and watched like a client's.
            "cordon": lambda node: self._patch_node(node, {"spec": {"unschedulable": True}}),
            "uncordon": lambda node: self._patch_node(node, {"spec": {"unschedulable": None}}),
            "label": self._label,
            "delete-node": lambda node: self._call_api("DELETE", f"/api/v1/nodes/{node}"),
            "delete-pod": self._delete_pod,
            "power-on": lambda vm: self._power(self._estate.power_on, vm),
            "power-off": lambda vm: self._power(self._estate.power_off, vm),
            "suspend": lambda vm: self._power(self._estate.suspend, vm),
            "shut-down": lambda vm: self._power(self._estate.shut_down_guest, vm),
            "move": self._move,
        }
        self._acts_on_hosts: dict[str, Callable[[Host], object]] = {
            "crash": estate.crash,
            "disconnect": estate.disconnect,
            "not-responding": estate.stop_responding,
            "connect": estate.connect,
            # vSphere API: a timeout of 0 is none. `evacuate` also moves away what does not run.
            "enter-maintenance": lambda host: estate.enter_maintenance(host, timeout_s=0),
            "evacuate": lambda host: estate.enter_maintenance(host, timeout_s=0, evacuate=True),
            "exit-maintenance": estate.leave_maintenance,
        }

    def act(self, sentence: str) -> None:
        verb, *words = sentence.split()
        try:
            if verb in self._acts_on_hosts:
                self._acts_on_hosts[verb](self._host(*words))
            else:
                self._acts[verb](*words)
        except Refusal as refusal:
            raise NotDone(refusal.message) from None
        except ApiError as error:
            raise NotDone(error.message) from None

    def act_or_log(self, sentence: str) -> None:
        """Act, or log why not: no client waits for a person's result, so none may be disturbed by it."""
        try:
            self.act(sentence)
        except NotDone as error:
            print(f"A person could not {sentence}: {error}", flush=True)  # into the folder's log

    def check(self, sentence: str) -> None:
        """Refuse a sentence that cannot be understood, or that names a VM, node or host that does not exist.

        Pods come and go under names that nobody chooses, so theirs are looked up only when the person acts.
        """
        verb, *words = sentence.split() or [""]
        known = self._acts.keys() | self._acts_on_hosts.keys()
        if verb not in known:
            acts = f"; there are: {', '.join(sorted(known))}"
            raise NotDone(f"no act is called {verb!r}{nearest(verb, sorted(known)) or acts}")
        if len(words) != (2 if verb in _WITH_TWO_WORDS else 1):
            raise NotDone(f"{verb} needs {_WITH_TWO_WORDS.get(verb, 'one name')}")
        if verb == "label" and not ("=" in words[1] or words[1].endswith("-")):
            raise NotDone(f"label needs key=value, or key- to remove it, not {words[1]}")
        if verb in self._acts_on_hosts:
            self._host(words[0])
        elif verb != "delete-pod":
            self._check_name(words[0], "node" if verb in _ON_NODES else "VM")
        if verb == "move":
            self._host(words[1])

    def _check_name(self, name: str, kind: str) -> None:
        """A node may be away for a while; then its VM still has its name."""
        nodes = () if kind == "VM" else self._nodes()
        if name not in self._estate.vms and name not in nodes:
            raise NotDone(f"there is no {kind} {name}{nearest(name, (*nodes, *self._estate.vms))}")

    def _nodes(self) -> list[str]:
        reply = self._api.answer(Request(method="GET", path="/api/v1/nodes"))
        assert isinstance(reply, Reply)
        return [name_of(node) for node in reply.body["items"]]

    def _power(self, change: Callable[[Vm], object], name: str) -> None:
        self._check_name(name, "VM")
        change(self._estate.vms[name])

    def _move(self, name: str, host: str) -> None:
        self._power(lambda vm: self._estate.migrate(vm, self._host(host)), name)

    def _host(self, name: str) -> Host:
        if name not in self._estate.hosts:
            raise NotDone(f"there is no host {name}{nearest(name, self._estate.hosts)}")
        return self._estate.hosts[name]

    def _label(self, node: str, change: str) -> None:
        """`key=value` sets a label, `key-` removes it."""
        key, sign, value = change.partition("=")
        self._patch_node(node, {"metadata": {"labels": {key: value} if sign else {key.removesuffix("-"): None}}})

    def _delete_pod(self, name: str) -> None:
        namespace, _, pod = name.rpartition("/")
        self._call_api("DELETE", f"/api/v1/namespaces/{namespace or 'default'}/pods/{pod}")

    def _patch_node(self, node: str, patch: dict[str, Any]) -> None:
        self._call_api("PATCH", f"/api/v1/nodes/{node}", patch)

    def _call_api(self, method: str, path: str, body: dict[str, Any] | None = None) -> None:
        encoded = json.dumps(body or {}).encode()
        self._api.answer(Request(method=method, path=path, body=encoded, content_type=MERGE, agent="kubectl-edit"))
