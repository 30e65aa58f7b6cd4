"""Each right of vgpuctl's account is taken away in turn: the commands do without it and say so, or name it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.support.account import Account
from tests.support.everything import ask_for_everything, everything_at_once
from tests.support.forked import Command, Forked, run
from tests.support.granted import hearing
from vgpuctl.kube.rights import OURS, RIGHTS, Extra, Right, Scope
from vgpuctl.sim.world import World
from vgpuctl.testing import Estate

DAY, NIGHT = "worker-1", "worker-5"
SWITCH, DRY_RUN = ("switch", "--yes"), ("switch", "--dry-run")
STATUS = ("status", "-o", "json")
WITHIN_S = 40


class Without(NamedTuple):
    """What happens without a right: the words of a command, its exit code and what it says.

    `first`: the object of ours that is not there yet.
    """

    words: tuple[str, ...]
    code: int
    said: str
    first: str = ""


def blind(kind: str) -> Without:
    return Without(STATUS, 5, f'cannot list resource "{kind}"')


def unseen(kind: str) -> Without:
    return Without(DRY_RUN, 0, f"Kubernetes shows us no {kind}")


UNTOLD = "The history will not show this switch"
#: By resource and verbs, as the page of rights has them.
ORDINARY: dict[str, Without] = {
    "list watch nodes": blind("nodes"),
    "patch nodes": Without(SWITCH, 5, "This account may not patch nodes. Nothing was changed."),
    "list watch pods": blind("pods"),
    "create pods/eviction": Without(SWITCH, 5, "This account may not create pods/eviction in the namespace default."),
    "list watch poddisruptionbudgets": blind("poddisruptionbudgets"),
    "list watch daemonsets": unseen("daemonsets"),
    "list watch jobs": unseen("jobs"),
    "list watch volumeattachments": unseen("volumeattachments"),
    "list watch persistentvolumeclaims": unseen("persistentvolumeclaims"),
    "list watch resourcequotas": Without(STATUS, 0, '"quotas": null'),
    "list watch leases in kube-node-lease": blind("leases"),
    "get leases vgpuctl vgpuctl-daemon": Without(SWITCH, 5, 'cannot get resource "leases"'),
    "update leases vgpuctl vgpuctl-daemon": Without(SWITCH, 5, 'cannot update resource "leases"'),
    "create leases": Without(SWITCH, 5, 'cannot create resource "leases"', first="leases"),
    "get configmaps vgpuctl": Without(SWITCH, 5, 'cannot get resource "configmaps"'),
    "patch configmaps vgpuctl": Without(SWITCH, 5, 'cannot patch resource "configmaps"'),
    "create configmaps": Without(SWITCH, 5, 'cannot create resource "configmaps"', first="configmaps"),
    "get update delete configmaps": Without(SWITCH, 0, UNTOLD),
}
EXTRA: dict[str, Without] = {
    "delete pods": Without(SWITCH, 5, "This account may not delete pods in the namespace default."),
    "list watch deployments statefulsets": Without(
        SWITCH, 3, "Kubernetes does not show us deployments and statefulsets"
    ),
    "patch deployments statefulsets": Without(SWITCH, 5, "This account may not patch deployments in the namespace"),
    "list watch horizontalpodautoscalers": unseen("horizontalpodautoscalers"),
    "list watch patch machines": Without(DRY_RUN, 0, "cannot be marked from here"),
}


def named(right: Right) -> str:
    place = f"in {right.scope}" if right.scope is Scope.HEARTBEATS else ""
    return " ".join((*right.verbs, *right.resources, *right.names, *([place] if place else [])))


#: Rights that a switch can spare, beside those that its dry run names, and one that only a watching status uses.
SPARED = ("create events", "list configmaps")
FOLLOWED = "list watch configmaps vgpuctl"
BY_NAME = {named(right): right for right in RIGHTS}


def test_each_right_is_taken_away() -> None:
    assert BY_NAME.keys() == ORDINARY.keys() | EXTRA.keys() | {*SPARED, FOLLOWED}


class Story:
    """An estate on an ordinary day, and the account. Switches go to and fro."""

    def __init__(self, estate: Estate, account: Account) -> None:
        self.estate, self.account = estate, account

    def shift(self) -> str:
        night = self.estate.within(lambda world: world.estate.vms[NIGHT].power.value == "poweredOn")
        return "night" if night else "day"

    def run(self, words: tuple[str, ...]) -> tuple[int, str]:
        other = {"day": "night", "night": "day"}[self.shift()]
        return self.account.run(*words[:1], *([other] if words[0] == "switch" else []), *words[1:])

    def stand(self) -> Any:
        """All that a switch changes, but for the Lease and the history."""
        return self.estate.within(_stand)

    def notices(self) -> int:
        """How many Events tell owners that a worker leaves."""
        events = self.estate.within(lambda world: world.kubernetes.store.all("events"))
        return sum(event["reason"] == "WorkerLeaves" for event in events)

    def delete(self, plural: str) -> None:
        self.estate.within(lambda world: world.kubernetes.store.remove(plural, OURS, OURS))


def _stand(world: World) -> Any:
    nodes = [(node["metadata"]["labels"], node["spec"]) for node in world.kubernetes.store.sorted("nodes")]
    return {name: vm.power for name, vm in world.estate.vms.items()}, nodes


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with Estate(tmp_path_factory.mktemp("ordinary") / "estate", "by-day") as estate:
        story = Story(estate, Account(estate))
        # The Lease and the departures are then there, whichever test comes first in this process.
        code, said = story.run(SWITCH)
        assert code == 0, said
        yield story


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    folder = tmp_path_factory.mktemp("everything")
    with Estate(folder / "estate", everything_at_once(folder)) as estate:
        ask_for_everything(estate)
        yield Story(estate, Account(estate, *(f"--{extra}" for extra in Extra)))


@pytest.mark.parametrize("name", ORDINARY)
def test_without_a_right_of_every_account(ordinary: Story, name: str) -> None:
    check(ordinary, BY_NAME[name], ORDINARY[name])


@pytest.mark.parametrize("name", EXTRA)
def test_without_a_right_that_an_option_adds(everything: Story, name: str) -> None:
    check(everything, BY_NAME[name], EXTRA[name])


def check(story: Story, right: Right, expected: Without) -> None:
    if expected.first:
        story.delete(expected.first)
    before, shift = story.stand(), story.shift()
    with story.account.without(right):
        code, said = story.run(expected.words)
    assert code == expected.code, said
    assert expected.said in said
    if code or expected.words != SWITCH:
        assert story.stand() == before, "it changed something all the same"
    else:
        assert story.shift() != shift, "it did not go on"


def test_a_switch_goes_on_without_all_that_it_can_spare(ordinary: Story) -> None:
    foreseen = [name for name, each in ORDINARY.items() if each.words == DRY_RUN]
    before, shift = ordinary.notices(), ordinary.shift()
    with ordinary.account.without(*(BY_NAME[name] for name in (*SPARED, *foreseen))):
        code, said = ordinary.run(SWITCH)
    assert (code, ordinary.notices()) == (0, before), said
    assert ordinary.shift() != shift
    assert [name for name in foreseen if ORDINARY[name].said not in said] == []
    assert f"{UNTOLD}: Kubernetes at" in said
    assert 'cannot list resource "configmaps"' in said


def test_a_switch_goes_on_without_the_options_that_it_can_spare(everything: Story) -> None:
    foreseen = [name for name, each in EXTRA.items() if each.words == DRY_RUN]
    shift = everything.shift()
    with everything.account.without(*(BY_NAME[name] for name in foreseen)):
        code, said = everything.run(SWITCH)
    assert code == 0, said
    assert everything.shift() != shift
    assert [name for name in foreseen if EXTRA[name].said not in said] == []


def test_without_its_right_a_watching_status_does_not_follow_departures(ordinary: Story) -> None:
    """With the right it does: `test_rights_used` waits for that watch."""
    words = ("status", "-w", "-o", "json")
    with (
        ordinary.account.without(BY_NAME[FOLLOWED]),
        hearing() as heard,
        Forked(Command(words=words, env=ordinary.account.environment())) as process,
    ):
        heard.wait_for(("list", "configmaps"), ("watch", "resourcequotas"), ("watch", "nodes"))
        process.send_signal(signal.SIGTERM)
        process.communicate(WITHIN_S)
        assert process.returncode == 130
    assert ("watch", "configmaps") not in {(asked.verb, asked.resource) for asked in heard.asked}


def test_without_the_right_to_watch_a_switch_does_not_begin(ordinary: Story) -> None:
    """What cannot be followed is not known well enough to act on, though it can be listed."""
    before = ordinary.stand()
    other = {"day": "night", "night": "day"}[ordinary.shift()]
    patience = ("tests.support.account", "lose_patience")
    with ordinary.account.without(BY_NAME["list watch jobs"], verbs=("watch",)):
        command = Command(words=("switch", other, "--yes"), env=ordinary.account.environment(), first=patience)
        code, _, said = run(command, WITHIN_S)
    assert code == 5, said
    assert "Kubernetes cannot be heard" in said
    assert "jobs.batch is forbidden" in said
    assert ordinary.stand() == before
