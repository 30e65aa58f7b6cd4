"""The Job controller: pods that run to completion. Each end is counted once; too many failures end the Job."""

from __future__ import annotations

from vgpuctl.sim.kube.controllers.controller_context import ControllerContext
from vgpuctl.sim.kube.controllers.workloads import Workloads, new_pod
from vgpuctl.sim.kube.objects import (
    Object,
    at,
    condition,
    controller_of,
    from_timestamp,
    is_active,
    is_finished,
    is_leaving,
    is_true,
    set_condition,
    timestamp,
)
from vgpuctl.sim.kube.store import Change, Key, key_of, path_of

# Kubernetes' finalizer that keeps an ended pod until the Job has counted its end.
TRACKING = "batch.kubernetes.io/job-tracking"
Verdict = tuple[str, str, str]
SUCCESS: Verdict = ("Complete", "CompletionsReached", "Reached expected number of succeeded pods")


class Jobs(Workloads):
    kind, plural = "Job", "jobs"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        context.store.subscribe([self.plural], self._job_changed)

    def _job_changed(self, change: Change) -> None:
        limit_s = at(change.object, "spec.activeDeadlineSeconds")
        if limit_s is not None and at(change.before or {}, "status.startTime") != at(change.object, "status.startTime"):
            # Kubernetes: activeDeadlineSeconds runs on while a VM sleeps.
            self._context.clock.after(limit_s, lambda: self._queue.add(key_of(change.object)))

    def _reconcile(self, key: Key) -> None:
        """For a Job that is gone or leaving, only release its pods."""
        job = self._store.get(self.plural, *key)
        if job is not None and not is_leaving(job):
            self.reconcile(job)
            return
        for pod in self._store.sorted("pods", key[0]):
            owner = controller_of(pod) or {}
            if owner.get("kind") == self.kind and owner["name"] == key[1] and _ended(pod, waits=False):
                self._context.release(pod, TRACKING)

    def reconcile(self, item: Object) -> None:
        pods = sorted(self.owned_objects(item), key=key_of)
        # Kubernetes: otherwise a pod counts as ended as soon as it leaves.
        waits = item["spec"]["podReplacementPolicy"] == "Failed"
        held = [pod for pod in pods if TRACKING in (pod["metadata"].get("finalizers") or [])]
        ended = [pod for pod in held if _ended(pod, waits=waits)]
        done, failed = self._count_ended(item, ended)
        finished = is_true(item, "Complete") or is_true(item, "Failed")
        # Kubernetes (syncJob): failures are judged first. A Job succeeds once its surplus pods are gone, too.
        verdict = None if finished else self._failure(item, failed, ended)
        active = [pod for pod in pods if is_active(pod)]
        if finished or verdict:
            self._delete_beyond(item, active, 0)
            active = []
        else:
            active = self._create_missing(item, pods, active, done)
            verdict = None if active or not _is_complete(item, done) else SUCCESS
        self._set_counts(item, {"active": len(active), "succeeded": done, "failed": failed}, pods)
        if verdict:
            self._finish(item, verdict)
        for pod in ended:
            self._context.release(pod, TRACKING)

    def _count_ended(self, item: Object, ended: list[Object]) -> tuple[int, int]:
        done: int = at(item, "status.succeeded") or 0
        failed: int = at(item, "status.failed") or 0
        for pod in ended:
            if at(pod, "status.phase") == "Succeeded":
                done += 1
            # Kubernetes: Ignore neither counts a failure nor spends a retry.
            elif _action(item, pod) != "Ignore":
                failed += 1
        return done, failed

    def _failure(self, item: Object, failed: int, ended: list[Object]) -> Verdict | None:
        """Return why the Job has failed."""
        if any(_action(item, pod) == "FailJob" for pod in ended if at(pod, "status.phase") != "Succeeded"):
            return (
                "Failed",
                "PodFailurePolicy",
                "A pod failed in a way that the Job's podFailurePolicy does not forgive",
            )
        # Kubernetes: the limit counts retries, so one failure more ends the Job.
        if failed > item["spec"]["backoffLimit"]:
            return "Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        limit_s, since = at(item, "spec.activeDeadlineSeconds"), at(item, "status.startTime")
        if limit_s is None or not since:
            return None
        late = (self._context.clock.utc() - from_timestamp(since)).total_seconds() >= limit_s
        return ("Failed", "DeadlineExceeded", "Job was active longer than specified deadline") if late else None

    def _create_missing(self, item: Object, pods: list[Object], active: list[Object], done: int) -> list[Object]:
        spec = item["spec"]
        # Kubernetes: a suspended Job has no pods; its active ones are deleted.
        wanted = 0 if spec["suspend"] else _wanted(spec, len(active), done)
        waits = spec["podReplacementPolicy"] == "Failed"
        leaving = sum(is_leaving(pod) and not is_finished(pod) for pod in pods) if waits else 0
        made = []
        for _ in range(wanted - len(active) - leaving):
            pod = new_pod(item, self._store.suffix())
            pod["metadata"]["finalizers"] = [TRACKING]
            made.append(pod)
            self.create_pod(item, pod)
        self._delete_beyond(item, active, wanted)
        return [*active[:wanted], *made]

    def _delete_beyond(self, item: Object, active: list[Object], left: int) -> None:
        for pod in active[left:]:
            self.delete_pod(item, pod)

    def _set_counts(self, item: Object, counts: dict[str, int], pods: list[Object]) -> None:
        status: Object = {name: count for name, count in counts.items() if count}
        status["ready"] = sum(is_active(pod) and is_true(pod, "Ready") for pod in pods)
        status["terminating"] = sum(is_leaving(pod) and not is_finished(pod) for pod in pods)
        status["uncountedTerminatedPods"] = {}
        since = at(item, "status.startTime") or timestamp(self._context.clock.utc())
        former = {name: value for name, value in (item.get("status") or {}).items() if name == "completionTime"}

        def write(job: Object) -> None:
            conditions = {"conditions": found} if (found := at(job, "status.conditions")) else {}
            job["status"] = status | former | conditions | ({} if item["spec"]["suspend"] else {"startTime": since})

        self._store.edit(*path_of(self.plural, item), write)

    def _finish(self, item: Object, verdict: Verdict) -> None:
        kind, reason, message = verdict
        now = self._context.clock.utc()

        def write(job: Object) -> None:
            # Kubernetes: this condition comes before the final one.
            for each in ("SuccessCriteriaMet" if kind == "Complete" else "FailureTarget", kind):
                set_condition(job, now, {"type": each, "status": "True", "reason": reason, "message": message})
            if kind == "Complete":
                job["status"]["completionTime"] = timestamp(now)

        self._store.edit(*path_of(self.plural, item), write)
        event = ("Completed", "Job completed") if kind == "Complete" else (reason, message)
        self._context.record_event(item, self._event_source, *event, warning=kind == "Failed")


def _is_complete(item: Object, done: int) -> bool:
    """Return True if enough pods have succeeded. Without `completions` one is enough, when the others have ended."""
    completions = item["spec"].get("completions")
    return done > 0 if completions is None else bool(done >= completions)


def _wanted(spec: Object, active: int, done: int) -> int:
    """Return how many pods should run now."""
    # Kubernetes (manageJob): a work queue starts no pod after the first success, and lets the others end.
    if spec.get("completions") is None:
        return active if done else int(spec["parallelism"])
    wanted: int = min(spec["parallelism"], spec["completions"] - done)
    return max(0, wanted)


def _ended(pod: Object, *, waits: bool) -> bool:
    """Return True for a finished or leaving pod. With `waits`, a leaving pod on a node counts only once it
    is finished.
    """
    return is_finished(pod) or (is_leaving(pod) and not (waits and pod["spec"].get("nodeName")))


def _action(job: Object, pod: Object) -> str:
    """Return the action of the first rule in the Job's podFailurePolicy that matches a failed pod."""
    codes = {
        found["name"]: (at(found, "state.terminated") or {}).get("exitCode", 0)
        for found in at(pod, "status.containerStatuses") or []
    }
    for rule in at(job, "spec.podFailurePolicy.rules") or []:
        patterns = rule.get("onPodConditions") or []
        # Kubernetes: the first rule that matches decides.
        by_condition = any(_has_condition(pod, pattern) for pattern in patterns)
        if by_condition or _matches_exit_code(rule.get("onExitCodes"), codes):
            return str(rule["action"])
    # Kubernetes: what matches no rule counts as a failure.
    return "Count"


def _has_condition(pod: Object, pattern: Object) -> bool:
    return (condition(pod, pattern["type"]) or {}).get("status") == (pattern.get("status") or "True")


def _matches_exit_code(wanted: Object | None, codes: dict[str, int]) -> bool:
    if not wanted:
        return False
    name, values = wanted.get("containerName"), wanted.get("values") or []
    # Kubernetes: an exit code of 0 is no failure, and matches no rule.
    ended = [code for container, code in codes.items() if code and name in (None, container)]
    return any((code in values) is (wanted["operator"] == "In") for code in ended)
