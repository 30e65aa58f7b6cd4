"""What is said before a drain begins, although nothing is refused for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.support.fleets import day_and_night, machine, night_wish, pod, with_node, with_worker
from tests.support.past import night, past_step
from vgpuctl.kube.views import job
from vgpuctl.kube.views import pod as pod_view
from vgpuctl.model.conduct import Asleep, Conduct
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.journal import Entry
from vgpuctl.model.pods import Freeze
from vgpuctl.model.timetable import DrainOptions
from vgpuctl.operations import look_ahead, with_history

NO = "karpenter.sh/do-not-disrupt=true"


def said(options: DrainOptions | None = None, /, **pods: dict[str, Any]) -> list[str]:
    some, _ = day_and_night()
    some = with_node(some, "worker-1", pods=tuple(pod(name, **more) for name, more in pods.items()))
    return [remark.message for remark in look_ahead(some, night_wish(some, options)).remarks]


def test_pods_that_asked_not_to_be_disturbed_are_named_but_hold_nothing_up() -> None:
    assert said(a={"not_now": (NO,)}, b={"not_now": (NO,)}, c={}) == [
        f"worker-1: a, b asked not to be disturbed ({NO})"
    ]
    many = {f"p{n}": {"not_now": (NO,)} for n in range(5)}
    assert said(**many) == [f"worker-1: p0, p1, p2 and 2 more asked not to be disturbed ({NO})"]


def test_long_goodbyes_are_foreseen_with_the_grace_that_will_be_given() -> None:
    bert = {"bert": {"namespace": "training", "grace_s": 3600}}
    assert said(**bert) == ["worker-1: training/bert may take up to 1 h to end, and the drain is given 10 min"]
    assert said(DrainOptions(timeout_s=7200), **bert) == ["worker-1: training/bert may take up to 1 h to end"]
    assert said(DrainOptions(grace_period_s=30), **bert) == []
    asked = DrainOptions(namespaces={"training": DrainOptions(grace_period_s=90)})
    assert said(asked, **bert) == ["worker-1: training/bert may take up to 1 min 30 s to end"]


def test_an_eviction_that_a_job_counts_as_a_failure_is_said() -> None:
    (remark,) = said(bert={"owner": "Job/bert", "counted": True}, steady={})
    assert remark.startswith("worker-1: bert: an eviction counts against the Job's backoffLimit")

    def ignores(*rules: dict[str, Any]) -> bool:
        spec = {"podFailurePolicy": {"rules": list(rules)}} if rules else {}
        return job({"metadata": {"namespace": "n", "name": "j"}, "spec": spec})[1]

    disrupted = {"type": "DisruptionTarget", "status": "True"}
    assert not ignores()
    assert ignores({"action": "Ignore", "onPodConditions": [disrupted]})
    assert not ignores({"action": "Count", "onPodConditions": [disrupted]})
    assert not ignores({"action": "Ignore", "onExitCodes": {"operator": "In", "values": [42]}})


def test_who_does_not_leave_is_not_spoken_of() -> None:
    assert said(a={"owner": "DaemonSet/d", "not_now": (NO,), "grace_s": 3600}) == []
    assert said(a={"terminating": True, "not_now": (NO,)}) == []


def test_what_we_may_not_see_is_said_where_something_is_drained() -> None:
    some, wish = day_and_night(unseen=("daemonsets",))
    (remark,) = look_ahead(some, wish).remarks
    assert "no daemonsets" in remark.message
    asleep = replace(some, workers={"worker-5": some.worker("worker-5")})
    assert look_ahead(asleep, night_wish(asleep)).remarks == ()


def test_annotations_and_graces_as_the_server_tells_them() -> None:
    def seen(spec: dict[str, Any] | None = None, **meta: Any) -> Any:
        return pod_view({"metadata": {"namespace": "n", "name": "p", "uid": "u", **meta}, "spec": spec or {}})

    safe = "cluster-autoscaler.kubernetes.io/safe-to-evict"
    assert seen(annotations={safe: "false"}).not_now == (f"{safe}=false",)
    assert seen(annotations={safe: "true"}).not_now == ()
    both = {safe: "false", "karpenter.sh/do-not-disrupt": "true", "other": "true"}
    assert seen(annotations=both).not_now == (f"{safe}=false", NO)
    assert (seen().grace_s, seen({"terminationGracePeriodSeconds": 5}).grace_s) == (30, 5)
    gone = seen(
        {"terminationGracePeriodSeconds": 5}, deletionGracePeriodSeconds=0, deletionTimestamp="2026-01-01T00:00:00Z"
    )
    assert (gone.grace_s, gone.terminating, gone.ends_by) == (0, True, "2026-01-01T00:00:00Z")


def dear(*entries: Entry, asleep: Asleep = Asleep.SUSPEND, some: Fleet | None = None, **memory_gib: int) -> list[str]:
    some = some or day_and_night()[0]
    for name, gib in memory_gib.items():
        some = with_worker(some, name.replace("_", "-"), memory_mib=gib * 1024)
    ahead = look_ahead(some, night_wish(some, conduct=Conduct(asleep=asleep)))
    return [remark.message for remark in with_history(ahead, entries).remarks]


def test_a_sleep_that_costs_more_than_a_boot_is_told_of_the_slowest() -> None:
    assert dear(worker_1=256, worker_2=128) == [
        "to suspend and resume worker-1 takes about 18 min, 256 GB of memory each way; "
        "to shut it down and boot it (asleep: off) would take about 1 min 35 s"
    ]
    assert dear(worker_1=16, worker_2=16) == []
    assert dear(worker_1=256, asleep=Asleep.OFF) == []
    assert dear(worker_5=256) == [], "it does not go to sleep"


def test_where_a_pod_sleeps_along_off_is_no_way() -> None:
    some, _ = day_and_night()
    frozen = with_node(some, "worker-2", pods=(pod("bert", freeze=Freeze.READY),))
    assert not [said for said in dear(some=frozen, worker_1=256) if "asleep: off" in said]


def test_what_was_seen_earlier_is_believed_more_than_sizes() -> None:
    def seen(suspend_s: float, resume_s: float) -> Entry:
        first = past_step("Suspend/worker-1", 0, suspend_s)
        return night(steps=(first, past_step("PowerOn/worker-1", 0, resume_s)))

    assert dear(seen(40, 41), worker_1=256) == [], "a quick datastore"
    assert dear(seen(400, 41), worker_1=16) != []
    slow_boot = night(steps=(past_step("PowerOn/worker-1", 0, 900, what="power on"),))
    assert dear(slow_boot, worker_1=128) == []
    quick_start = night(steps=(past_step("PowerOn/worker-1", 0, 2, what="power on"),))
    assert dear(quick_start, worker_1=16) == [], "a power-on is no boot"


def test_machines_that_cannot_be_marked_are_named_where_their_workers_leave() -> None:
    some, _ = day_and_night()
    for name in ("worker-2", "worker-3", "worker-5"):
        some = with_node(some, name, machine=f"gpu/{name}")
    some = with_worker(some, "worker-3", machine=machine("worker-3"))
    (remark,) = look_ahead(some, night_wish(some)).remarks
    assert remark.message.startswith("The Machine of worker-2 cannot be marked from here: ")


def test_suspends_on_a_datastore_that_vcenter_does_not_show_are_said() -> None:
    some, _ = day_and_night()
    for name in ("worker-1", "worker-2"):
        some = with_worker(some, name, datastore="store")
    unknown = "vCenter does not show the room of store: a suspend may fail for want of it."
    assert [remark.message for remark in look_ahead(some, night_wish(some)).remarks] == [unknown]
    known = replace(some, datastores={"store": 1 << 30})
    assert look_ahead(known, night_wish(known)).remarks == ()
    off = night_wish(some, conduct=Conduct(asleep=Asleep.OFF))
    assert unknown not in [remark.message for remark in look_ahead(some, off).remarks], "a shutdown writes nothing"
