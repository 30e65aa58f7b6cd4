"""What pods ask for beyond a node and a GPU: gates, schedulers, init containers, deadlines; or what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.kubernetes_cluster import DAY, MERGE, NIGHT, PODS, Cluster, the_condition
from vgpuctl.sim.kube.objects import Object, at, is_true, name_of

APPS = "/apis/apps/v1/namespaces/default"
GATES = [{"name": "example.test/one"}, {"name": "example.test/two"}]
ANYWHERE: Object = {"tolerations": [{"operator": "Exists"}]}


@pytest.fixture
def day() -> Cluster:
    return Cluster.by_day()


def asking(cpu: str, **more: object) -> Object:
    return {"name": f"c{cpu}", "image": "one", "resources": {"requests": {"cpu": cpu}}, **more}


def pod(name: str = "pod", /, **spec: Any) -> Object:
    own = {"containers": [{"name": "main", "image": "one"}], **spec}
    return {"metadata": {"name": name, "labels": {"app": name}}, "spec": own}


def workload(**spec: Any) -> Object:
    template = pod("web", **spec)
    return {
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template},
    }


def causes(refusal: Any) -> dict[str, str]:
    assert (refusal.code, refusal.reason) == (422, "Invalid")
    return {cause["field"]: cause["message"] for cause in refusal.details["causes"]}


def cells(day: Cluster, name: str) -> list[Any]:
    table = day.ask("GET", f"{PODS}/{name}", accept="application/json;as=Table;g=meta.k8s.io;v=v1")
    row: list[Any] = table["rows"][0]["cells"]
    return row


def test_a_gated_pod_waits_until_its_last_gate_is_gone(day: Cluster) -> None:
    made = day.ask("POST", PODS, pod(schedulingGates=GATES))
    assert the_condition(made, "PodScheduled")["reason"] == "SchedulingGated"
    for left in ([GATES[1]], [GATES[1]], None):
        day.wait(60)
        waits = day.ask("GET", f"{PODS}/pod")
        assert at(waits, "spec.nodeName") is None
        assert (the_condition(waits, "PodScheduled")["reason"], cells(day, "pod")[2]) == ("SchedulingGated",) * 2
        day.ask("PATCH", f"{PODS}/pod", {"spec": {"schedulingGates": left}}, content_type=MERGE)
    day.wait(5)
    assert is_true(day.ask("GET", f"{PODS}/pod"), "PodScheduled")
    assert cells(day, "pod")[2] == "Running"


def test_gates_only_go_and_a_gated_pods_node_selector_only_grows(day: Cluster) -> None:
    day.ask("POST", PODS, pod(schedulingGates=GATES[:1], nodeSelector={"a": "b"}))

    def changed(spec: Object) -> dict[str, str]:
        return causes(day.refused("PATCH", f"{PODS}/pod", {"spec": spec}, content_type=MERGE))

    assert changed({"schedulingGates": GATES}) == {
        "spec.schedulingGates[1].name": "Forbidden: only deletion is allowed, but found new scheduling gate "
        "'example.test/two'"
    }
    day.ask("PATCH", f"{PODS}/pod", {"spec": {"nodeSelector": {"c": "d"}}}, content_type=MERGE)
    assert list(changed({"nodeSelector": {"a": None}})) == ["spec"]
    day.ask("PATCH", f"{PODS}/pod", {"spec": {"schedulingGates": None}}, content_type=MERGE)
    assert list(changed({"nodeSelector": {"e": "f"}})) == ["spec"]
    assert day.ask("GET", f"{PODS}/pod")["spec"]["nodeSelector"] == {"a": "b", "c": "d"}


def test_another_schedulers_pod_is_left_to_it(day: Cluster) -> None:
    day.ask("POST", PODS, pod(schedulerName="volcano"))
    day.ask("POST", PODS, pod("usual", schedulerName=""))
    day.wait(60)
    left, usual = (day.ask("GET", f"{PODS}/{name}") for name in ("pod", "usual"))
    assert (left["status"]["phase"], at(left, "spec.nodeName"), at(left, "status.conditions")) == (
        "Pending",
        None,
        None,
    )
    assert (usual["status"]["phase"], usual["spec"]["schedulerName"]) == ("Running", "default-scheduler")
    bound = {"spec": {"nodeName": "worker-1"}}
    assert causes(day.refused("PATCH", f"{PODS}/pod", bound, content_type=MERGE)), "a binding is no patch"


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        ({"initContainers": [asking("7")]}, True),
        ({"initContainers": [asking("9")]}, False),
        ({"initContainers": [asking("7"), asking("6")]}, True),
        ({"initContainers": [asking("5", restartPolicy="Always"), asking("4")]}, False),
        ({"initContainers": [asking("5"), asking("4", restartPolicy="Always")]}, True),
        ({"initContainers": [asking("5", restartPolicy="Always")], "containers": [asking("4")]}, False),
        ({"initContainers": [asking("5")], "containers": [asking("4")]}, True),
        ({"resources": {"requests": {"cpu": "9"}}, "containers": [asking("1")]}, False),
        ({"resources": {"requests": {"cpu": "1"}}, "containers": [asking("9")]}, True),
        ({"overhead": {"cpu": "2"}, "containers": [asking("7")]}, False),
    ],
)
def test_a_node_must_hold_what_a_pod_takes_at_any_moment(day: Cluster, spec: Object, fits: bool) -> None:
    """Each worker has eight CPUs, and the control plane's are taken."""
    day.cordon("infra-1")
    day.ask("POST", PODS, pod(**spec))
    day.wait(1)
    found = the_condition(day.ask("GET", f"{PODS}/pod"), "PodScheduled")
    assert (found["status"] == "True") is fits
    assert fits or "Insufficient cpu" in found["message"]


def test_sidecars_are_shown_beside_the_containers(day: Cluster) -> None:
    day.ask("POST", PODS, pod(initContainers=[asking("1"), asking("2", restartPolicy="Always")], nodeName="worker-1"))
    day.wait(0)
    assert cells(day, "pod")[1:3] == ["0/2", "Init:0/2"]
    day.wait(5)
    found = day.ask("GET", f"{PODS}/pod")["status"]["initContainerStatuses"]
    assert [next(iter(each["state"])) for each in found] == ["terminated", "running"]
    assert cells(day, "pod")[1:4] == ["2/2", "Running", "0"]
    day.kubernetes.halt("worker-1")
    day.kubernetes.boot("worker-1", 1)
    day.wait(10)
    assert cells(day, "pod")[1:4] == ["2/2", "Running", "2"]


def failed(day: Cluster, name: str = "pod") -> tuple[str, str | None]:
    status = day.ask("GET", f"{PODS}/{name}")["status"]
    return status["phase"], status.get("reason")


def test_a_pod_fails_when_it_was_active_for_longer_than_it_may(day: Cluster) -> None:
    day.ask("POST", PODS, pod(activeDeadlineSeconds=30, nodeName="worker-1"))
    day.wait(28)
    assert failed(day) == ("Running", None)
    day.wait(3)
    assert failed(day) == ("Failed", "DeadlineExceeded")
    found = day.ask("GET", f"{PODS}/pod")["status"]
    assert found["message"] == "Pod was active on the node longer than the specified deadline"
    assert "terminated" in found["containerStatuses"][0]["state"]


def test_a_deadline_may_come_nearer_and_never_go_away(day: Cluster) -> None:
    day.ask("POST", PODS, pod(nodeName="worker-1"))
    day.wait(20)
    for limit_s in (100, 30):
        day.ask("PATCH", f"{PODS}/pod", {"spec": {"activeDeadlineSeconds": limit_s}}, content_type=MERGE)
    for limit, why in ((60, "must be less than or equal to previous value"), (None, "from a positive integer to nil")):
        change = {"spec": {"activeDeadlineSeconds": limit}}
        assert (
            why in causes(day.refused("PATCH", f"{PODS}/pod", change, content_type=MERGE))["spec.activeDeadlineSeconds"]
        )
    day.wait(8)
    assert failed(day) == ("Running", None)
    day.wait(3)
    assert failed(day) == ("Failed", "DeadlineExceeded")


def test_a_deadline_that_passes_while_the_vm_sleeps_ends_the_pod_at_its_resume(day: Cluster) -> None:
    day.ask("POST", PODS, pod(activeDeadlineSeconds=60, nodeName="worker-1", **ANYWHERE))
    day.wait(10)
    day.kubernetes.freeze("worker-1")
    day.wait(600)
    assert failed(day) == ("Running", None)
    day.kubernetes.thaw("worker-1")
    day.wait(3)
    assert failed(day) == ("Failed", "DeadlineExceeded")
    day.wait(4000)
    assert failed(day) == ("Failed", "DeadlineExceeded")


def test_a_jobs_pod_past_its_deadline_is_a_failure_of_the_job(day: Cluster) -> None:
    template = pod("work", restartPolicy="Never", activeDeadlineSeconds=20, nodeName="worker-1")
    job = {"metadata": {"name": "work"}, "spec": {"template": template, "backoffLimit": 0}}
    day.ask("POST", "/apis/batch/v1/namespaces/default/jobs", job)
    day.wait(30)
    found = day.ask("GET", "/apis/batch/v1/namespaces/default/jobs/work")
    assert (found["status"]["failed"], the_condition(found, "Failed")["reason"]) == (1, "BackoffLimitExceeded")


TERM = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "a", "labelSelector": {}}]}
SPREAD = {"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule"}
NOT_SIMULATED: list[tuple[Object, str, str]] = [
    ({"priorityClassName": "system-node-critical"}, "priorityClassName", "preemption"),
    ({"priority": 5}, "priority", "preemption"),
    ({"preemptionPolicy": "Never"}, "preemptionPolicy", "preemption"),
    (
        {"affinity": {"podAffinity": TERM}},
        "affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution",
        "required affinity between pods",
    ),
    (
        {"affinity": {"podAntiAffinity": TERM}},
        "affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution",
        "required affinity between pods",
    ),
    (
        {"topologySpreadConstraints": [SPREAD]},
        "topologySpreadConstraints[0].whenUnsatisfiable",
        "a spread with DoNotSchedule",
    ),
    ({"resourceClaims": [{"name": "gpu"}]}, "resourceClaims", "dynamic resource allocation"),
]


@pytest.mark.parametrize(("spec", "field", "what"), NOT_SIMULATED)
def test_what_is_not_simulated_is_refused_by_name_before_it_waits_for_nothing(
    day: Cluster, spec: Object, field: str, what: str
) -> None:
    why = f"Forbidden: this simulator does not simulate {what}"
    assert causes(day.refused("POST", PODS, pod(**spec))) == {f"spec.{field}": why}
    for plural in ("deployments", "statefulsets", "daemonsets"):
        refusal = day.refused("POST", f"{APPS}/{plural}", workload(**spec))
        assert causes(refusal) == {f"spec.template.spec.{field}": why}


def test_wishes_and_what_every_pod_has_are_no_refusal(day: Cluster) -> None:
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": TERM}]}
    usual: Object = {"priority": 0, "preemptionPolicy": "PreemptLowerPriority", "priorityClassName": ""}
    spread = [SPREAD | {"whenUnsatisfiable": "ScheduleAnyway"}]
    wishes: Object = {"affinity": {"podAntiAffinity": preferred}, "topologySpreadConstraints": spread}
    day.ask("POST", PODS, pod(**usual, **wishes))
    day.wait(5)
    assert failed(day) == ("Running", None)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"activeDeadlineSeconds": 0}, "spec.activeDeadlineSeconds"),
        ({"schedulingGates": [{"name": "b ad"}]}, "spec.schedulingGates[0]"),
        ({"schedulingGates": [{}]}, "spec.schedulingGates[0]"),
        ({"schedulingGates": GATES[:1] * 2}, "spec.schedulingGates[1]"),
        ({"schedulingGates": GATES, "nodeName": "worker-1"}, "spec.nodeName"),
        ({"initContainers": [{"name": "main", "image": "one"}]}, "spec.initContainers[0].name"),
    ],
)
def test_fields_that_make_no_sense_are_named(day: Cluster, spec: Object, field: str) -> None:
    assert list(causes(day.refused("POST", PODS, pod(**spec)))) == [field]


def test_a_shared_volume_hangs_on_every_node_of_its_pods(day: Cluster) -> None:
    day.kubernetes.boot(NIGHT, 1)
    claim = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    day.ask("POST", "/api/v1/namespaces/default/persistentvolumeclaims", {"metadata": {"name": "data"}, "spec": claim})
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    for node in DAY[:3]:
        day.ask("POST", PODS, pod(f"on-{node}", nodeName=node, volumes=volumes, **ANYWHERE))
    day.wait(5)
    assert attached(day) == list(DAY[:3])
    assert {item["status"]["phase"] for item in day.pods("on")} == {"Running"}
    day.kubernetes.freeze(DAY[0])
    day.ask("DELETE", f"{PODS}/on-{DAY[1]}")
    day.wait(60)
    assert attached(day) == [DAY[0], DAY[2]], "of the sleeping node too, whose pod is still there"
    assert sorted(name_of(item) for item in day.pods("on")) == [f"on-{DAY[0]}", f"on-{DAY[2]}"]


def attached(day: Cluster) -> list[str]:
    items = day.kubernetes.store.all("volumeattachments")
    return sorted(item["spec"]["nodeName"] for item in items if item["status"]["attached"])
