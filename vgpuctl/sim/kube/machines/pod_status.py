"""The changes that a kubelet makes to a pod's status."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from vgpuctl.sim.kube.objects import Object, controller_of, is_sidecar, set_condition, timestamp

#: kubelet: the reason and message of a pod that was active for longer than its `activeDeadlineSeconds`.
DEADLINE_EXCEEDED = "DeadlineExceeded"
PAST_DEADLINE = "Pod was active on the node longer than the specified deadline"
#: kubelet: the reason and message of a pod for which its device manager has no device.
#: Measured with a real kubelet: after a reboot with a late plugin, a pod failed with this reason and did not recover.
NOT_ADMITTED = "UnexpectedAdmissionError"
NO_DEVICE = (
    "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices {}, which is unexpected"
)
Edit = Callable[[Object], None]


def _conditions(pod: Object, now: datetime, statuses: dict[str, str], reason: str = "") -> None:
    for kind, status in statuses.items():
        set_condition(pod, now, {"type": kind, "status": status} | ({"reason": reason} if reason else {}))


def creating(pod: Object, now: datetime, host_address: str) -> None:
    status = pod["status"]
    status.setdefault("startTime", timestamp(now))
    status["hostIP"] = host_address
    _conditions(pod, now, {"Initialized": "True"})
    _conditions(pod, now, {"Ready": "False", "ContainersReady": "False"}, "ContainersNotReady")
    # kubelet: this is what `kubectl get pods` shows of a pod that starts.
    inits = pod["spec"].get("initContainers") or []
    waiting = {"waiting": {"reason": "PodInitializing" if inits else "ContainerCreating"}}
    new = {"ready": False, "started": False, "state": waiting}
    status["containerStatuses"] = [_container(pod, container, new) for container in pod["spec"]["containers"]]
    if inits:
        status["initContainerStatuses"] = [_container(pod, container, new) for container in inits]


def running(pod: Object, now: datetime, address: str) -> None:
    status = pod["status"]
    status["phase"] = "Running"
    status["podIP"], status["podIPs"] = address, [{"ip": address}]
    _conditions(pod, now, {"Initialized": "True", "Ready": "True", "ContainersReady": "True"})
    up = {"ready": True, "started": True, "state": {"running": {"startedAt": timestamp(now)}}}
    status["containerStatuses"] = [_container(pod, container, up) for container in pod["spec"]["containers"]]
    times = {"startedAt": timestamp(now), "finishedAt": timestamp(now)}
    # kubelet: an init container that has done its work stays ready; a sidecar runs on.
    done = {"ready": True, "started": False, "state": {"terminated": {"exitCode": 0, "reason": "Completed"} | times}}
    if inits := pod["spec"].get("initContainers"):
        status["initContainerStatuses"] = [_container(pod, each, up if is_sidecar(each) else done) for each in inits]


def unready(pod: Object, now: datetime) -> None:
    """The containers run, and are not ready."""
    _conditions(pod, now, {"Ready": "False", "ContainersReady": "False"}, "ContainersNotReady")
    _set_containers_ready(pod, ready=False)


def ready_again(pod: Object, now: datetime) -> None:
    _conditions(pod, now, {"Ready": "True", "ContainersReady": "True"})
    _set_containers_ready(pod, ready=True)


def _set_containers_ready(pod: Object, *, ready: bool) -> None:
    for container in pod["status"].get("containerStatuses") or []:
        container["ready"] = ready


def probed(pod: Object, now: datetime, *, passes: bool) -> None:
    """The kubelet writes this when a readiness probe begins to fail, or passes again."""
    status = "True" if passes else "False"
    _conditions(pod, now, {"Ready": status, "ContainersReady": status}, "" if passes else "ContainersNotReady")
    for container in pod["status"].get("containerStatuses") or []:
        container["ready"] = passes


def not_ready(pod: Object, now: datetime) -> None:
    """The node lifecycle controller writes this when the pod's node has gone silent."""
    _conditions(pod, now, {"Ready": "False"})


def restarting(pod: Object, now: datetime) -> None:
    _conditions(pod, now, {"Ready": "False", "ContainersReady": "False"}, "ContainersNotReady")
    for container in _statuses(pod):
        # Kubernetes: a restart counts, a resume does not: this tells frozen pods from restarted ones.
        container["restartCount"] = container.get("restartCount", 0) + 1
        container["ready"] = False


def succeeded(pod: Object, now: datetime) -> None:
    _set_terminated(pod, now, "Succeeded", {"exitCode": 0, "reason": "Completed"})


def failed(pod: Object, now: datetime) -> None:
    # 137 is 128 and SIGKILL: how a container ends that is killed.
    _set_terminated(pod, now, "Failed", {"exitCode": 137, "reason": "Error"})


def past_deadline(pod: Object, now: datetime) -> None:
    failed(pod, now)
    pod["status"] |= {"reason": DEADLINE_EXCEEDED, "message": PAST_DEADLINE}


def not_admitted(pod: Object, now: datetime, resource: str) -> None:
    failed(pod, now)
    pod["status"] |= {"reason": NOT_ADMITTED, "message": f"Pod was rejected: {NO_DEVICE.format(resource)}"}


def _statuses(pod: Object) -> list[Object]:
    status = pod["status"]
    return [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]


def _set_terminated(pod: Object, now: datetime, phase: str, terminated: Object) -> None:
    pod["status"]["phase"] = phase
    reason = "PodCompleted" if phase == "Succeeded" else "PodFailed"
    _conditions(pod, now, {"Ready": "False", "ContainersReady": "False"}, reason)
    for container in _statuses(pod):
        if "terminated" in container.get("state", {}):
            continue
        started = (container.get("state", {}).get("running") or {}).get("startedAt", timestamp(now))
        times = {"startedAt": started, "finishedAt": timestamp(now)}
        container |= {"ready": False, "started": False, "state": {"terminated": terminated | times}}


def ends_by_itself(pod: Object) -> bool:
    # Kubernetes: a Job's pods may end; a Deployment's never do by themselves.
    return pod["spec"]["restartPolicy"] != "Always" and (controller_of(pod) or {}).get("kind") == "Job"


def _container(pod: Object, container: Object, state: Object) -> Object:
    name = container["name"]
    former = [found for found in _statuses(pod) if found.get("name") == name]
    restarts = former[0].get("restartCount", 0) if former else 0
    image = container.get("image", "")
    return {"name": name, "image": image, "imageID": image, "restartCount": restarts, "lastState": {}} | state
