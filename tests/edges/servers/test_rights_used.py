"""The rights that `vgpuctl rights` prints are those that whole stories use: none is lacking, and none is too many."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import yaml

from tests.support.account import Account
from tests.support.everything import ask_for_everything, everything_at_once
from tests.support.forked import Command, Forked, run
from tests.support.granted import Asked, Heard, Rule, hearing, rules
from tests.support.operator import Operator
from tests.support.past import night
from vgpuctl.kube.journal import HISTORY, KEPT, KEY, KIND_LABEL
from vgpuctl.kube.manifests import Grant, Subject
from vgpuctl.kube.rights import RIGHTS, Extra, rights
from vgpuctl.model.journal import document
from vgpuctl.sim.vcenter.inventory.permissions import READING
from vgpuctl.sim.vcenter.wire import rights as wire_rights
from vgpuctl.sim.world import World
from vgpuctl.testing import Estate
from vgpuctl.vsphere.rights import PRIVILEGES

WITHIN_S = 40
READ_ONLY = "--read-only"


def granted(*extras: Extra, read_only: bool = False) -> list[Rule]:
    """Return the rules that the command prints."""
    found = rights(frozenset(extras), read_only=read_only)
    grant = Grant(name="vgpuctl", namespace="vgpuctl", rights=found, subjects=(Subject(kind="User", name="ann"),))
    return rules(each for each, _ in grant.objects())


@dataclass
class Story:
    """What vgpuctl does with the account and the user that its own files make, on servers that allow nothing else."""

    estate: Estate
    heard: Heard
    account: Account
    operator: Operator

    def vgpuctl(self, *words: str) -> str:
        code, out, err = run(self._command(*words), WITHIN_S)
        assert code == 0, f"{words}: {code}\n{out}\n{err}"
        return out

    def until_it_asked(self, *words: str, asks: tuple[tuple[str, str], ...]) -> None:
        """Run a command that goes on for ever until it has asked all this."""
        with Forked(self._command(*words)) as process:
            self.heard.wait_for(*asks)
            process.send_signal(signal.SIGTERM)
            process.communicate(WITHIN_S)

    def _command(self, *words: str) -> Command:
        return Command(words=words, env=self.account.environment() | self.operator.login())


def fill_the_history(world: World) -> None:
    """With as many entries as are kept, so that the next one deletes the oldest."""
    for number in range(101, 101 + KEPT):
        add_to_the_history(world, number, "{}")


@contextmanager
def story(folder: Path, scenario: str, *options: str) -> Iterator[Story]:
    with hearing() as heard, Estate(folder, scenario or None) as estate:
        reads = [option for option in options if option == READ_ONLY]
        yield Story(estate, heard, Account(estate, *options), Operator(estate, *reads))


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory: pytest.TempPathFactory) -> Heard:
    """Every command, and the daemon, on a host where nothing is out of the ordinary."""
    with story(tmp_path_factory.mktemp("ordinary") / "estate", "by-day") as told:
        # One that is off, and one that runs: it is drained and restarted.
        told.vgpuctl("provision", "worker-5", "worker-1", "--profile", "none", "--yes")
        told.vgpuctl("provision", "--yes")
        told.vgpuctl("label-nodes")
        told.vgpuctl("switch", "night", "--yes")
        told.estate.within(fill_the_history)
        # An entry whose answer is lost is written again, and found to be ours.
        told.estate.fault("POST configmaps", "lose-reply", nth=1)
        told.vgpuctl("switch", "day", "--yes")
        told.vgpuctl("status", "-o", "json")
        for order in (
            "override night --for 1h",
            "pause",
            "unpause",
            "maintenance enter --all",
            "maintenance exit --all",
        ):
            told.vgpuctl(*order.split())
        told.vgpuctl("override", "clear")
        told.vgpuctl("history")
        told.vgpuctl("hold", "worker-1", "--for", "2h")
        told.vgpuctl("unhold", "--all")
        told.until_it_asked("status", "-w", "-o", "json", asks=(("watch", "resourcequotas"), ("watch", "configmaps")))
        told.until_it_asked("daemon", asks=(("watch", "configmaps"),))
    return told.heard


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Heard:
    """A night that scales, deletes pods at the deadline, and marks Machines."""
    folder = tmp_path_factory.mktemp("everything")
    with story(folder / "estate", everything_at_once(folder), *(f"--{extra}" for extra in Extra)) as told:
        ask_for_everything(told.estate)
        told.vgpuctl("switch", "night", "--yes")
        told.vgpuctl("switch", "day", "--yes")
    return told.heard


@pytest.fixture(scope="module")
def looking(tmp_path_factory: pytest.TempPathFactory) -> Heard:
    """Status and history, of a timetable that scales, too."""
    with story(tmp_path_factory.mktemp("looking") / "estate", "by-day", READ_ONLY, "--scale") as told:
        path = told.estate.folder / "schedules" / "day-night.yaml"
        timetable = yaml.safe_load(path.read_text())
        timetable["shifts"]["night"]["scale"] = ["default/deployment/gateway"]
        path.write_text(yaml.safe_dump(timetable))
        told.estate.within(leave_a_running_entry)
        told.vgpuctl("history")
        told.vgpuctl("status", "-o", "json")
        told.until_it_asked("status", "-w", "-o", "json", asks=SEEN_BY_WATCH)
    return told.heard


#: What a watching status asks for last.
SEEN_BY_WATCH = tuple(
    ("watch", resource)
    for resource in ("nodes", "pods", "configmaps", "daemonsets", "resourcequotas", "leases", "poddisruptionbudgets")
) + tuple(("watch", resource) for resource in ("deployments", "statefulsets", "horizontalpodautoscalers"))


def leave_a_running_entry(world: World) -> None:
    """One that seems to run: whether it does, the Lease says."""
    add_to_the_history(world, 41, json.dumps(document(night(outcome="running"))))


def add_to_the_history(world: World, number: int, text: str) -> None:
    metadata = {"name": f"vgpuctl-history-{number}", "namespace": "vgpuctl", "labels": {KIND_LABEL: HISTORY}}
    entry = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {KEY: text}}
    world.kubernetes.context.create("configmaps", entry)


def lacking(heard: Heard, allowed: list[Rule]) -> set[Asked]:
    return {asked for asked in heard.asked if not any(rule.allows(asked) for rule in allowed)}


def unused(heard: set[Asked], allowed: list[Rule]) -> set[tuple[str, str, str, str]]:
    """Return each verb on each resource that nobody used, by rule."""
    return {
        (rule.namespace, resource, " ".join(rule.names), verb)
        for rule in allowed
        for resource in rule.resources
        for verb in rule.verbs
        if not any(replace(rule, resources=(resource,), verbs=(verb,)).allows(asked) for asked in heard)
    }


def test_no_request_of_an_ordinary_day_lacks_a_right(ordinary: Heard) -> None:
    assert lacking(ordinary, granted()) == set()


def test_no_request_lacks_a_right_that_an_option_adds(everything: Heard) -> None:
    assert lacking(everything, granted(*Extra)) == set()


@pytest.mark.parametrize("extra", Extra)
def test_without_its_option_a_right_is_lacking(everything: Heard, extra: Extra) -> None:
    found = lacking(everything, granted(*set(Extra) - {extra}))
    expected = {
        (resource, verb)
        for right in RIGHTS
        if right.extra is extra
        for resource in right.resources
        for verb in right.verbs
    }
    assert {(asked.resource, asked.verb) for asked in found} == expected


def test_every_right_is_used_by_a_request(ordinary: Heard, everything: Heard) -> None:
    assert unused(ordinary.asked, granted()) == set()
    assert unused(ordinary.asked | everything.asked, granted(*Extra)) == set()


def test_status_and_history_need_what_read_only_grants_and_use_all_of_it(looking: Heard) -> None:
    allowed = granted(Extra.SCALE, read_only=True)
    assert lacking(looking, allowed) == set()
    assert unused(looking.asked, allowed) == set()


@pytest.fixture(scope="module")
def privileges(tmp_path_factory: pytest.TempPathFactory) -> set[tuple[str, str]]:
    """The privileges that vCenter asked for, by kind of object, in provisions, a day and a night."""
    asked: set[tuple[str, str]] = set()
    check = wire_rights.check

    def listening(center: Any, session: Any, request: Any) -> None:
        asked.update((type(target).__name__.rpartition(".")[2], name) for target, name in wire_rights.required(request))
        check(center, session, request)

    with (
        story(tmp_path_factory.mktemp("vcenter") / "estate", "") as told,
        patch.object(wire_rights, "check", listening),
    ):
        told.vgpuctl("provision", "--yes")
        told.vgpuctl("switch", "day", "--yes")
        told.vgpuctl("switch", "night", "--yes")
        told.vgpuctl("provision", "worker-5", "--profile", "none", "--power-off-after", "10m", "--yes")
    return asked


def test_vcenter_asks_for_the_privileges_of_the_role_and_for_no_other(privileges: set[tuple[str, str]]) -> None:
    """As the metadata of its methods, and the vSphere API's page on ReconfigVM_Task, have them."""
    asked = {(kind, name) for kind, name in privileges if name not in READING}
    assert asked == {("VirtualMachine", each.name) for each in PRIVILEGES if not each.name.startswith("System.")}


def test_the_only_other_requests_are_those_that_every_account_may_send(
    ordinary: Heard, everything: Heard, looking: Heard
) -> None:
    """Kubernetes grants them by system:discovery and system:basic-user."""
    assert ordinary.open_to_all | everything.open_to_all | looking.open_to_all == {
        "GET /apis/cluster.x-k8s.io",
        "POST /apis/authentication.k8s.io/v1/selfsubjectreviews",
        "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    }
