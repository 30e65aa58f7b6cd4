"""The defaults that the API server adds to a new object."""

from __future__ import annotations

from vgpuctl.sim.kube.api import rbac_rules, secrets
from vgpuctl.sim.kube.api.kinds import STORED
from vgpuctl.sim.kube.objects import Object

#: Kubernetes: the admission plugin DefaultTolerationSeconds.
TOLERATION_S = 300
DEFAULT_SCHEDULER = "default-scheduler"
_NODE_PROBLEM_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def fill_in(plural: str, item: Object) -> None:
    """Add the defaults. Values that are there stay, so it may be repeated."""
    kind = STORED[plural]
    if kind.has_spec:
        item["spec"] = item.get("spec") or {}
    if kind.zero_counts is not None:
        # Measured with kube-apiserver 1.36: counts are shown even before a controller has written a status.
        item.setdefault("status", dict.fromkeys(kind.zero_counts, 0))
    if plural == "pods":
        _pod(item)
    elif plural == "deployments":
        _deployment(item)
    elif plural == "jobs":
        _job(item)
    elif plural == "replicasets":
        item["spec"].setdefault("replicas", 1)
    elif plural == "statefulsets":
        _stateful_set(item["spec"])
    elif plural == "daemonsets":
        item["spec"].setdefault(
            "updateStrategy", {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
        )
        item["spec"].setdefault("revisionHistoryLimit", 10)
    elif plural in ("rolebindings", "clusterrolebindings"):
        rbac_rules.fill_in_binding(item)
    elif plural == "secrets":
        secrets.fill_in(item)
    elif plural == "networkpolicies":
        _network_policy(item["spec"])
    elif plural == "namespaces":
        # Kubernetes: each namespace has its name as a label, and a finalizer of its own.
        item["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = item["metadata"]["name"]
        item.setdefault("spec", {"finalizers": ["kubernetes"]})
        item.setdefault("status", {"phase": "Active"})


def _pod(item: Object) -> None:
    spec = item["spec"]
    containers = [*(spec.get("initContainers") or []), *spec["containers"]]
    for container in containers:
        resources = container.setdefault("resources", {})
        # Kubernetes: what is limited and not requested is requested as it is limited.
        if resources.get("limits"):
            resources["requests"] = resources["limits"] | (resources.get("requests") or {})
    _pod_spec(spec)
    tolerations: list[Object] = spec.setdefault("tolerations", [])
    for key in _NODE_PROBLEM_TAINTS:
        # Kubernetes: the 300 s are added only if the pod names no toleration for that taint. So a pod that should stay
        # for ever must tolerate both taints from its creation.
        if not any(
            found.get("key") in (key, None, "") and found.get("effect") in ("NoExecute", None, "")
            for found in tolerations
        ):
            limited = {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATION_S}
            tolerations.append(limited)
    item["status"] = item.get("status") or {}
    item["status"].setdefault("phase", "Pending")
    has_resources = any(container["resources"] for container in containers)
    item["status"].setdefault("qosClass", "Burstable" if has_resources else "BestEffort")


def _pod_spec(spec: Object) -> None:
    spec.setdefault("restartPolicy", "Always")
    # Kubernetes: a grace period is 30 s, unless the pod says otherwise. It may be an hour.
    spec.setdefault("terminationGracePeriodSeconds", 30)
    # Measured: kube-apiserver 1.36 makes a second of less than none.
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    spec.setdefault("dnsPolicy", "ClusterFirst")
    if not spec.get("schedulerName"):
        spec["schedulerName"] = DEFAULT_SCHEDULER


def _deployment(item: Object) -> None:
    spec = item["spec"]
    spec.setdefault("replicas", 1)
    # Kubernetes: apps/v1, a Deployment's defaults.
    strategy: Object = {"type": "RollingUpdate"} | (spec.get("strategy") or {})
    if strategy["type"] == "RollingUpdate":
        rolling = {"maxSurge": "25%", "maxUnavailable": "25%"}
        strategy["rollingUpdate"] = rolling | (strategy.get("rollingUpdate") or {})
    # A spec that a patch left alone is the stored one, and is not written.
    if strategy != spec.get("strategy"):
        spec["strategy"] = strategy
    spec.setdefault("progressDeadlineSeconds", 600)
    spec.setdefault("revisionHistoryLimit", 10)


def _network_policy(spec: Object) -> None:
    # Kubernetes: a policy without types is one for incoming packets, and with rules for outgoing ones also for these.
    spec.setdefault("policyTypes", ["Ingress", *(["Egress"] if spec.get("egress") else [])])
    for rule in (*(spec.get("ingress") or ()), *(spec.get("egress") or ())):
        for port in rule.get("ports") or ():
            port.setdefault("protocol", "TCP")


def _stateful_set(spec: Object) -> None:
    spec.setdefault("replicas", 1)
    # Kubernetes: a StatefulSet creates one pod after another, unless it says Parallel.
    spec.setdefault("podManagementPolicy", "OrderedReady")
    spec.setdefault("updateStrategy", {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}})
    spec.setdefault("persistentVolumeClaimRetentionPolicy", {"whenDeleted": "Retain", "whenScaled": "Retain"})
    spec.setdefault("revisionHistoryLimit", 10)


def _job(item: Object) -> None:
    spec, metadata = item["spec"], item["metadata"]
    # Kubernetes: a Job with parallelism alone is a work queue, whose first success is enough.
    if spec.get("parallelism") is None:
        spec.setdefault("completions", 1)
    spec.setdefault("parallelism", 1)
    # Kubernetes: batch/v1. Evictions count against this limit, unless podFailurePolicy ignores DisruptionTarget.
    spec.setdefault("backoffLimit", 6)
    spec.setdefault("completionMode", "NonIndexed")
    # Kubernetes: with a podFailurePolicy, a leaving pod is replaced only once it has ended.
    spec.setdefault("podReplacementPolicy", "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed")
    spec.setdefault("suspend", False)
    uid = metadata["uid"]
    # Kubernetes: the server makes a Job's selector, from its uid.
    job_labels = {"batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": metadata["name"]}
    job_labels |= {"controller-uid": uid, "job-name": metadata["name"]}
    spec.setdefault("selector", {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}})
    metadata["labels"] = (metadata.get("labels") or {}) | job_labels
    template = spec["template"].setdefault("metadata", {})
    template["labels"] = (template.get("labels") or {}) | job_labels
