"""Jobs: pods that run to an end; one that is taken away is made anew."""

from __future__ import annotations

from datetime import datetime

from vgpuctl.sim.kube.ground import Ground, Teller
from vgpuctl.sim.kube.objects import (
    Object,
    at,
    controller_of,
    is_active,
    is_leaving,
    is_true,
    name_of,
    namespace_of,
    set_condition,
    timestamp,
    uid_of,
)
from vgpuctl.sim.kube.queue import Queue
from vgpuctl.sim.kube.store import OWNER, Change, Key, key_of
from vgpuctl.sim.kube.workloads import new_pod


class Jobs:
    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._queue = Queue(ground.clock, self._look_at)
        self._teller = Teller("job-controller")
        ground.store.subscribe(["jobs"], lambda change: self._queue.add(key_of(change.object)))
        ground.store.subscribe(["pods"], self._pod_changed)

    def _pod_changed(self, change: Change) -> None:
        owner = controller_of(change.object)
        if owner is not None and owner["kind"] == "Job":
            self._queue.add((namespace_of(change.object), owner["name"]))

    def _look_at(self, key: Key) -> None:
        job = self._ground.store.get("jobs", *key)
        if job is None or is_leaving(job) or is_true(job, "Complete"):
            return
        pods = self._ground.store.where("pods", OWNER, uid_of(job))
        active = [pod for pod in pods if is_active(pod)]
        done = sum(at(pod, "status.phase") == "Succeeded" for pod in pods)
        spec = job["spec"]
        wanted = 0 if spec["suspend"] else min(spec["parallelism"], spec["completions"] - done)
        for _ in range(wanted - len(active)):
            pod = self._ground.create("pods", new_pod(job, self._ground.store.suffix()))
            active.append(pod)
            self._ground.tell(job, self._teller, "SuccessfulCreate", f"Created pod: {name_of(pod)}")
        for pod in active[max(0, wanted) :]:
            self._ground.delete("pods", pod)
        now = self._ground.clock.utc()
        self._ground.store.edit("jobs", *key, lambda item: _count(item, pods, active, now))


def _count(job: Object, pods: list[Object], active: list[Object], now: datetime) -> None:
    phases = [at(pod, "status.phase") for pod in pods]
    done = phases.count("Succeeded")
    former = job.get("status") or {}
    status: Object = {"active": len(active), "succeeded": done, "failed": phases.count("Failed")}
    status = {key: value for key, value in status.items() if value}
    status["ready"] = sum(is_true(pod, "Ready") for pod in active)
    status["terminating"] = sum(is_leaving(pod) for pod in pods)
    status["startTime"] = former.get("startTime") or timestamp(now)
    if former.get("conditions"):
        status["conditions"] = former["conditions"]
    job["status"] = status
    if done >= job["spec"]["completions"]:
        reason = {"reason": "CompletionsReached", "message": "Reached expected number of succeeded pods"}
        for kind in ("SuccessCriteriaMet", "Complete"):
            set_condition(job, now, {"type": kind, "status": "True"} | reason)
        status["completionTime"] = timestamp(now)
