"""What happens in a month beside its starts: people's orders and deeds, outages, crashes, and files that change.

Each thing is drawn with its moment beforehand. It is counted only where it was really done.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.support.clients import kubectl
from tests.support.months.processes import PersonsSwitch, Process
from tests.support.months.rules import DAY, SPARED, Ordered, drawn_rules, due_now
from tests.support.months.servers import TRUSTED_S
from tests.support.trouble import random_rule
from vgpuctl.model.hold import Hold, hold_annotations
from vgpuctl.model.ledger import PAUSE, Changes, maintenance_key, outcome_key, override_key
from vgpuctl.model.orders import Maintenance, Override, Pause
from vgpuctl.sim.faults import KUBERNETES, VCENTER, Effect, How, Rule
from vgpuctl.sim.kube.api.errors import ApiError

if TYPE_CHECKING:
    from tests.support.months.month import Month

ANNA = "anna"
DOES = "_do_"
PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
CLOSED = {"spec": {"maxUnavailable": 0}}
#: Faults of single requests last so long, then the weather is fair again.
FAULTS_S = 240.0
#: What leads to second tries and to turns on the way, so it is drawn more often.
OFTEN = (
    "budget_closed",
    "budget_closed",
    "budget_closed",
    "task_fails",
    "task_fails",
    "override",
    "pause_now",
    "switch",
)


class Happenings:
    """Things that may happen, by name. `drawn` plans some of them."""

    def __init__(self, month: Month) -> None:
        self._month = month
        self.kinds: Mapping[str, Callable[[random.Random], bool]] = {
            name: getattr(self, f"{DOES}{name}") for name in KINDS
        }

    def plan(self, seed: int, days: int, a_day: int) -> None:
        """Draw what will happen: part of it at any time, most of it around the starts, where most is at stake.

        Each day is drawn by itself, so the first days of a month do not depend on its length.
        """
        month, day_s = self._month, DAY / timedelta(seconds=1)
        kinds = [*KINDS, *OFTEN]
        for day in range(days):
            chance = random.Random(f"day {day} of month {seed}")
            for _ in range(a_day):
                when_s = day_s * day + self._moment_s(chance, day_s)
                kind, own = chance.choice(kinds), random.Random(chance.random())
                month.world.clock.after(when_s, partial(self.happen, kind, own))

    def _moment_s(self, chance: random.Random, day_s: float) -> float:
        if chance.random() < 0.4:
            return chance.uniform(60.0, day_s)
        month = self._month
        starts = [at for rules in month.referee.said.rules.values() for at, _ in rules.starts(month.now)]
        start_s = (chance.choice(starts) - month.now) / timedelta(seconds=1) % day_s
        return max(1.0, start_s + chance.uniform(-60.0, 120.0))

    def happen(self, kind: str, chance: random.Random) -> None:
        if self.kinds[kind](chance):
            self._month.counts[kind] += 1
            self._month.log(f"-- {kind}")
            self._month.referee.stir()

    def _later(self, seconds: float, work: Callable[[], object]) -> None:
        def act() -> None:
            work()
            self._month.referee.stir()

        self._month.world.clock.after(seconds, act)

    # Orders.

    def _order(self, changes: Changes) -> bool:
        if self._month.kubernetes_away_since_s is not None:
            return False
        self._month.ledger.write(changes)
        return True

    def _given(self, chance: random.Random, *, always_ends: bool = True) -> dict[str, Any]:
        now = self._month.now
        until = now + timedelta(minutes=chance.choice([5, 20, 45])) if always_ends or chance.random() < 0.5 else None
        return {"who": ANNA, "since": now, "until": until, "reason": "a test"}

    def _a_table(self, chance: random.Random) -> Any:
        return chance.choice(self._month.tables)

    def _a_place(self, chance: random.Random) -> tuple[Any, str]:
        return chance.choice(self._month.places())

    def _do_override(self, chance: random.Random) -> bool:
        table = self._a_table(chance)
        order = Override(timetable=table.name, shift=chance.choice(list(table.shifts)), **self._given(chance))
        return self._order({override_key(table.name): order})

    def _do_override_cleared(self, chance: random.Random) -> bool:
        orders = self._month.ledger.true.orders.overrides
        active = [each for each in orders.values() if each.active(self._month.now)]
        return bool(active) and self._order(
            {override_key(active[0].timetable): replace(active[0], until=self._month.now)}
        )

    def _do_pause(self, chance: random.Random) -> bool:
        return self._order({PAUSE: Pause(**self._given(chance))})

    def _do_pause_now(self, chance: random.Random) -> bool:
        return self._order({PAUSE: Pause(at_once=True, **self._given(chance))})

    def _do_unpause(self, _: random.Random) -> bool:
        return self._month.ledger.true.orders.paused(self._month.now) is not None and self._order({PAUSE: None})

    def _do_maintenance(self, chance: random.Random) -> bool:
        _, host = self._a_place(chance)
        return self._order({maintenance_key(host): Maintenance(host=host, **self._given(chance))})

    def _do_maintenance_over(self, _: random.Random) -> bool:
        orders = self._month.ledger.true.orders.maintenance
        hosts = [host for host, each in orders.items() if each.active(self._month.now)]
        return bool(hosts) and self._order({maintenance_key(host): None for host in hosts})

    def _do_unpark(self, _: random.Random) -> bool:
        parked = [each for each in self._month.ledger.true.outcomes.values() if each.parked]
        return bool(parked) and self._order({outcome_key(*each.key): None for each in parked})

    def _do_hold(self, chance: random.Random) -> bool:
        month = self._month
        worker = chance.choice(sorted(month.judge.conducts))
        until = (month.now + timedelta(minutes=chance.choice([5, 20, 45]))).replace(microsecond=0)
        hold = Hold(who=ANNA, until=until, reason="a test")
        if not self._annotate(worker, hold_annotations(hold)):
            return False
        self._hears_holds({**month.referee.said.holds, worker: Ordered(month.now, until)})
        return True

    def _do_unhold(self, _: random.Random) -> bool:
        holds = {name: each for name, each in self._month.referee.said.holds.items() if each.active(self._month.now)}
        done = [name for name in holds if self._annotate(name, hold_annotations(None))]
        self._hears_holds({name: each for name, each in holds.items() if name not in done})
        return bool(done)

    def _hears_holds(self, holds: dict[str, Ordered]) -> None:
        self._month.referee.hears(replace(self._month.referee.said, holds=holds))

    def _annotate(self, node: str, annotations: Mapping[str, str | None]) -> bool:
        try:
            self._month.kubectl("PATCH", f"/api/v1/nodes/{node}", {"metadata": {"annotations": dict(annotations)}})
        except ApiError:
            return False
        return True

    def _do_switch(self, chance: random.Random) -> bool:
        """A person's `vgpuctl switch`; the daemon is asked to let it pass."""
        month, table = self._month, self._a_table(chance)
        if month.waiting or month.kubernetes_away_since_s is not None:
            return False
        process = Process(month, ANNA, gives_way=False)
        switch = PersonsSwitch(process, chance.choice(list(table.shifts)), table.name)
        month.waiting.append(switch)
        process.crew.submit(switch.run)
        return True

    # Hands.

    def _do_power_by_hand(self, chance: random.Random) -> bool:
        """Somebody wakes a sleeper or suspends a worker, while its host rests in its shift."""
        month = self._month
        table, host = self._a_place(chance)
        due = due_now(month.referee.said, month.referee.said.rules[table.name], month.now)
        workers = [each for each in month.fleet().on_host(host) if table.keeps(each.name, "")]
        worker = chance.choice(workers)
        month.people.do("power", worker.name, 2 if worker.on else 0)
        month.referee.moved[worker.name] = month.now
        settled = month.referee.has_settled((table.name, host), due)
        if settled and month.now_s - month.busy_s > 90.0 and (table.name, host) not in month.ledger.true.departures:
            how = "off" if worker.on else "on"
            month.referee.hands[worker.name] = table.name, how, due.start
            month.counts["hands to be left alone"] += 1
        return True

    def _do_cordon(self, chance: random.Random) -> bool:
        worker = chance.choice(sorted(self._month.judge.conducts))
        self._month.people.do("cordon", worker, 0)
        self._later(chance.choice([120.0, 900.0]), lambda: self._month.people.do("uncordon", worker, 0))
        return True

    def _do_delete_pod(self, chance: random.Random) -> bool:
        worker = chance.choice(sorted(self._month.judge.conducts))
        self._month.people.do("delete-pod", worker, chance.randrange(100))
        return True

    def _do_bare_pod(self, chance: random.Random) -> bool:
        return self._a_pod(chance, {}, chance.choice([120.0, 600.0]))

    def _do_spared_pod(self, chance: random.Random) -> bool:
        return self._a_pod(chance, {SPARED: "true"}, chance.choice([300.0, 1200.0]))

    def _a_pod(self, chance: random.Random, labels: dict[str, str], lasts_s: float) -> bool:
        """A pod of nobody's on a node that is awake: a drain without `force` refuses it, as kubectl does."""
        month = self._month
        awake = [each.name for each in month.fleet().workers.values() if each.on and each.node]
        name, node = f"guest-{chance.randrange(10**6)}", chance.choice(awake or [""])
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": labels},
            "spec": {"nodeName": node, "containers": [{"name": "main", "image": "one"}]},
        }
        try:
            kubectl(month.world.api, "POST", PODS, body)
        except ApiError:
            return False
        month.people.bare.add(node)

        def leaves() -> None:
            month.people.bare.discard(node)
            with suppress(ApiError):
                kubectl(month.world.api, "DELETE", f"{PODS}/{name}")

        self._later(lasts_s, leaves)
        return True

    def _do_budget_closed(self, chance: random.Random) -> bool:
        month, name = self._month, chance.choice(["gateway", "web"])
        try:
            was = kubectl(month.world.api, "GET", f"{BUDGETS}/{name}")["spec"]
            kubectl(month.world.api, "PATCH", f"{BUDGETS}/{name}", CLOSED)
        except ApiError:
            return False
        opened = {"spec": {"maxUnavailable": max(1, was["maxUnavailable"])}}
        month.closed_budgets += 1

        def opens() -> None:
            month.closed_budgets -= 1
            with suppress(ApiError):
                kubectl(month.world.api, "PATCH", f"{BUDGETS}/{name}", opened)

        self._later(chance.choice([300.0, 1500.0]), opens)
        return True

    # Trouble.

    def _fault(self, rule: Rule, lasts_s: float) -> bool:
        fault = self._month.world.calls.faults.add(rule)

        def over() -> None:
            self._month.world.calls.faults.clear(fault.id)
            self._month.world.estate.work.release_hung()

        self._later(lasts_s, over)
        return True

    def _do_fault(self, chance: random.Random) -> bool:
        return self._fault(random_rule(chance), FAULTS_S)

    def _do_task_fails(self, chance: random.Random) -> bool:
        method = chance.choice(["PowerOnVM_Task", "SuspendVM_Task"])
        effect = Effect(how=How.TASK_FAILS, what=chance.choice(["NoCompatibleHost", "SystemError"]))
        return self._fault(Rule(server=VCENTER, method=method, effect=effect), chance.choice([FAULTS_S, 1200.0]))

    def _do_task_hangs(self, chance: random.Random) -> bool:
        effect = Effect(how=How.TASK_HANGS)
        method = chance.choice(["PowerOnVM_Task", "SuspendVM_Task"])
        return self._fault(Rule(server=VCENTER, method=method, effect=effect, times=1), chance.choice([60.0, 1200.0]))

    def _do_vcenter_away(self, chance: random.Random) -> bool:
        month = self._month
        if month.vcenter_away:
            return False
        month.vcenter_away = ("vCenter",)
        lasts_s = chance.choice([20.0, 120.0, 900.0])
        self._fault(Rule(server=VCENTER, effect=Effect(how=How.CUT)), lasts_s)

        def back() -> None:
            month.vcenter_away = ()

        self._later(lasts_s, back)
        return True

    def _do_kubernetes_away(self, chance: random.Random) -> bool:
        month = self._month
        if month.kubernetes_away_since_s is not None or any(not each.party.reaches for each in month.instances):
            return False
        month.kubernetes_away_since_s = month.now_s
        self._silence(month.parties())
        lasts_s = chance.choice([6.0, 30.0, 600.0])
        self._fault(Rule(server=KUBERNETES, effect=Effect(how=How.CUT)), lasts_s)

        def back() -> None:
            month.kubernetes_away_since_s = None
            month.hear_again(month.parties())

        self._later(lasts_s, back)
        return True

    def _silence(self, parties: list[Any]) -> None:
        for party in parties:
            party.silent_s = self._month.now_s

    def _do_leader_cut_off(self, chance: random.Random) -> bool:
        """The leader alone does not reach Kubernetes, and another one takes over if there is one."""
        month = self._month
        if month.leader is None or not month.leader.party.reaches or not month.leader.party.alive:
            return False
        party = month.leader.party
        self._silence([party])
        month.world.clock.after(TRUSTED_S + 7.1, month.elect)
        self._later(chance.choice([8.0, 40.0, 300.0]), lambda: month.hear_again([party]))
        return True

    def _do_ledger_fails(self, chance: random.Random) -> bool:
        self._month.ledger.failing = chance.randrange(1, 4)

        def over() -> None:
            self._month.ledger.failing = 0

        self._later(FAULTS_S, over)
        return True

    # The daemon.

    def _do_crash(self, chance: random.Random) -> bool:
        month = self._month
        if month.leader is None or not month.leader.party.alive:
            return False
        month.crash(month.leader)
        self._comes_back(chance.choice([5.0, 30.0]))
        return True

    def _do_crash_after_writes(self, chance: random.Random) -> bool:
        month = self._month
        if month.leader is None or month.leader.dies_after is not None:
            return False
        month.leader.dies_after = chance.randrange(1, 15)
        return True

    def _do_down(self, chance: random.Random) -> bool:
        """All instances are away, often over a start."""
        month = self._month
        if month.down_until_s > month.now_s or not month.instances:
            return False
        lasts_s = chance.choice([600.0, 2400.0])
        month.down_until_s = month.now_s + lasts_s
        for instance in tuple(month.instances):
            month.crash(instance) if chance.random() < 0.5 else instance.end()
        self._comes_back(lasts_s)
        return True

    def _do_end(self, _: random.Random) -> bool:
        """SIGTERM, and a new process."""
        month = self._month
        if month.leader is None or not month.leader.party.alive:
            return False
        month.leader.end()
        self._comes_back(3.0)
        return True

    def _comes_back(self, after_s: float) -> None:
        self._later(after_s, self._month.start_if_none)

    def _do_second_instance(self, _: random.Random) -> bool:
        month = self._month
        if len(month.instances) != 1 or month.down_until_s > month.now_s:
            return False
        month.start_another()
        return True

    # Files.

    def _do_files_change(self, chance: random.Random) -> bool:
        month = self._month
        rules = dict(month.referee.said.rules)
        table = self._a_table(chance)
        own = rules[table.name]
        fresh = drawn_rules(chance, table, own.version + 1)
        rules[table.name] = replace(fresh, at=own.at if chance.random() < 0.7 else fresh.at)
        month.write_files(rules)
        month.referee.hears(replace(month.referee.said, rules=rules))
        return True

    def _do_files_break(self, chance: random.Random) -> bool:
        month = self._month
        if month.broken_file:
            return False
        month.broken_file = True

        def mended() -> None:
            month.broken_file = False

        self._later(chance.choice([90.0, 900.0]), mended)
        return True


#: The names of all things that may happen.
KINDS = tuple(sorted(name.removeprefix(DOES) for name in dir(Happenings) if name.startswith(DOES)))


def synced(said: Any, orders: Any) -> Any:
    """Return what people have said, with the orders that the cluster keeps now."""

    def ordered(order: Any, what: str = "") -> Ordered:
        return Ordered(order.since, order.until, what)

    return replace(
        said,
        overrides={name: ordered(each, each.shift) for name, each in orders.overrides.items()},
        pause=ordered(orders.pause, "now" if orders.pause.at_once else "") if orders.pause else None,
        maintenance={host: ordered(each) for host, each in orders.maintenance.items()},
    )
