"""The cells of kubectl's tables: an object and the time in, a text or number out."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from vgpuctl.sim.kube.api.selectors import selector_text
from vgpuctl.sim.kube.objects import (
    Object,
    at,
    condition,
    from_timestamp,
    is_leaving,
    is_sidecar,
    is_true,
    labels_of,
    name_of,
)

Cell = Callable[[Object, datetime], Any]
_ROLE = "node-role.kubernetes.io/"
_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 31536000


def field(path: str, default: Any, *, as_text: bool = False) -> Cell:
    def cell(item: Object, now: datetime) -> Any:
        value = at(item, path)
        if value in (None, ""):
            return default
        return str(value) if as_text else value

    return cell


def duration(seconds: float) -> str:
    """Return an age as kubectl writes it: with a second unit while the first number is small."""
    whole = int(seconds)
    # Kubernetes: clocks may differ by less than two seconds; an age further in the future is invalid.
    if whole < 0:
        return "0s" if whole > -2 else "<invalid>"
    if whole < 2 * _MINUTE:
        return f"{whole}s"
    for limit, unit, below, names in _STEPS:
        if whole < limit:
            rest = whole % unit // below
            few = whole < _FEW[names]
            return f"{whole // unit}{names[0]}" + (f"{rest}{names[1]}" if few and rest else "")
    rest = whole % _YEAR // _DAY
    return f"{whole // _YEAR}y" + (f"{rest}d" if whole < 8 * _YEAR and rest else "")


#: Kubernetes: `HumanDuration` of k8s.io/apimachinery, with its limits.
_STEPS = (
    (3 * _HOUR, _MINUTE, 1, "ms"),
    (2 * _DAY, _HOUR, _MINUTE, "hm"),
    (2 * _YEAR, _DAY, _HOUR, "dh"),
)
_FEW = {"ms": 10 * _MINUTE, "hm": 8 * _HOUR, "dh": 8 * _DAY}


def since(text: str | None, now: datetime) -> str:
    return duration((now - from_timestamp(text)).total_seconds()) if text else "<unknown>"


def name(item: Object, now: datetime) -> str:
    return name_of(item)


def age(item: Object, now: datetime) -> str:
    return since(item["metadata"].get("creationTimestamp"), now)


def node_status(node: Object, now: datetime) -> str:
    ready = [found for found in at(node, "status.conditions") or [] if found["type"] == "Ready"]
    # Kubernetes: Unknown is shown as NotReady. So a sleeping node looks like a broken one.
    text = ("Ready" if ready[0]["status"] == "True" else "NotReady") if ready else "Unknown"
    return f"{text},SchedulingDisabled" if at(node, "spec.unschedulable") else text


def node_roles(node: Object, now: datetime) -> str:
    roles = sorted(key.removeprefix(_ROLE) for key in labels_of(node) if key.startswith(_ROLE))
    return ",".join(roles) or "<none>"


def internal_address(node: Object, now: datetime) -> str:
    addresses = at(node, "status.addresses") or []
    return next((found["address"] for found in addresses if found["type"] == "InternalIP"), "<none>")


def kernel(node: Object, now: datetime) -> str:
    info = at(node, "status.nodeInfo") or {}
    return f"{info.get('kernelVersion', '<unknown>')} ({info.get('architecture', '')})"


def pod_ready(pod: Object, now: datetime) -> str:
    ready = sum(bool(found.get("ready")) for found in _lasting_statuses(pod))
    return f"{ready}/{len(_sidecars(pod)) + len(pod['spec'].get('containers') or [])}"


def _sidecars(pod: Object) -> list[str]:
    return [found["name"] for found in pod["spec"].get("initContainers") or [] if is_sidecar(found)]


def _lasting_statuses(pod: Object) -> list[Object]:
    """Return the statuses of the containers and the sidecars."""
    sidecars = _sidecars(pod)
    inits = [found for found in at(pod, "status.initContainerStatuses") or [] if found["name"] in sidecars]
    return [*inits, *(at(pod, "status.containerStatuses") or [])]


def pod_status(pod: Object, now: datetime) -> str:
    if is_leaving(pod):
        return "Terminating"
    # Kubernetes: a container's reason, such as ContainerCreating, is shown instead of the phase.
    text = str(at(pod, "status.reason") or at(pod, "status.phase") or "")
    if (condition(pod, "PodScheduled") or {}).get("reason") == "SchedulingGated":
        text = "SchedulingGated"
    if initializing := _init_status(pod):
        return initializing
    for found in at(pod, "status.containerStatuses") or []:
        state = found.get("state") or {}
        not_running = state.get("waiting") or state.get("terminated") or {}
        text = not_running.get("reason") or text
    return text


def _init_status(pod: Object) -> str:
    """Return the first init container that is not done, as `Init:0/1`; "" if all are."""
    sidecars, inits = _sidecars(pod), pod["spec"].get("initContainers") or []
    # kube-apiserver: the words of its table.
    for number, found in enumerate(at(pod, "status.initContainerStatuses") or []):
        state = found.get("state") or {}
        ended, waiting = state.get("terminated"), (state.get("waiting") or {}).get("reason")
        if (ended and not ended.get("exitCode")) or (found["name"] in sidecars and found.get("started")):
            continue
        if ended:
            return f"Init:{ended.get('reason') or 'ExitCode:' + str(ended['exitCode'])}"
        return f"Init:{number}/{len(inits)}" if waiting in (None, "", "PodInitializing") else f"Init:{waiting}"
    return ""


def pod_restarts(pod: Object, now: datetime) -> str:
    return str(sum(found.get("restartCount", 0) for found in _lasting_statuses(pod)))


def ready_of_replicas(item: Object, now: datetime) -> str:
    return f"{at(item, 'status.readyReplicas') or 0}/{at(item, 'spec.replicas') or 0}"


def _template_containers(item: Object) -> list[Object]:
    return at(item, "spec.template.spec.containers") or []


def containers(item: Object, now: datetime) -> str:
    return ",".join(found["name"] for found in _template_containers(item))


def images(item: Object, now: datetime) -> str:
    return ",".join(found.get("image", "") for found in _template_containers(item))


def selector(item: Object, now: datetime) -> str:
    return selector_text(at(item, "spec.selector"))


def node_selector(item: Object, now: datetime) -> str:
    return selector_text({"matchLabels": at(item, "spec.template.spec.nodeSelector")})


def job_status(job: Object, now: datetime) -> str:
    for kind in ("Complete", "Failed", "Suspended"):
        if is_true(job, kind):
            return kind
    return "Terminating" if is_leaving(job) else "Running"


def job_completions(job: Object, now: datetime) -> str:
    done, wanted = at(job, "status.succeeded") or 0, at(job, "spec.completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    # Kubernetes: a work queue shows how many work on it.
    parallel = at(job, "spec.parallelism") or 0
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def job_duration(job: Object, now: datetime) -> str:
    began, ended = at(job, "status.startTime"), at(job, "status.completionTime")
    if not began:
        return ""
    return since(began, from_timestamp(ended) if ended else now)


def data_count(item: Object, now: datetime) -> int:
    return len(item.get("data") or {}) + len(item.get("binaryData") or {})


def pod_selector(policy: Object, now: datetime) -> str:
    return selector_text(at(policy, "spec.podSelector"))


def secret_count(account: Object, now: datetime) -> int:
    return len(account.get("secrets") or ())


def bound_role(binding: Object, now: datetime) -> str:
    return f"{binding['roleRef']['kind']}/{binding['roleRef']['name']}"


def subjects(kind: str) -> Cell:
    """Return the cell with the names of a binding's subjects of one kind."""

    def cell(binding: Object, now: datetime) -> str:
        found = [each for each in binding.get("subjects") or () if each["kind"] == kind]
        return ", ".join("/".join(filter(None, (each.get("namespace"), each["name"]))) for each in found)

    return cell


def last_seen(event: Object, now: datetime) -> str:
    # Kubernetes: an event of events.k8s.io has its times in other fields than a core event.
    seen = event.get("lastTimestamp") or event.get("deprecatedLastTimestamp") or event.get("eventTime")
    return since(seen or at(event, "series.lastObservedTime"), now)


def first_seen(event: Object, now: datetime) -> str:
    return since(event.get("firstTimestamp") or event.get("deprecatedFirstTimestamp") or event.get("eventTime"), now)


def message(event: Object, now: datetime) -> str:
    return str(event.get("message") or event.get("note") or "").strip()


def involved(event: Object, now: datetime) -> str:
    involved_object = event.get("involvedObject") or event.get("regarding") or {}
    return f"{str(involved_object.get('kind', '')).lower()}/{involved_object.get('name', '')}"


def source(event: Object, now: datetime) -> str:
    reporter = event.get("source") or event.get("deprecatedSource") or {}
    component = reporter.get("component") or event.get("reportingComponent") or event.get("reportingController") or ""
    host = reporter.get("host") or event.get("reportingInstance") or ""
    return f"{component}, {host}" if host else str(component)


def quota_share(*, limits: bool) -> Cell:
    """Return a cell such as `requests.nvidia.com/gpu: 3/4`: what is used of a quota's limits, or of everything else."""

    def cell(item: Object, now: datetime) -> str:
        hard, used = (at(item, f"status.{part}") or {} for part in ("hard", "used"))
        # Kubernetes: limits have a column of their own, everything else is a request.
        names = [name for name in sorted(hard) if name.startswith("limits.") is limits]
        return ", ".join(f"{name}: {used.get(name, '0')}/{hard[name]}" for name in names)

    return cell
