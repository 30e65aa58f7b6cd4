"""How the pods of a workload left in an earlier switch, for forecasts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from vgpuctl.basics import bounded
from vgpuctl.model.pods import Pod

#: Kubernetes: a CronJob names its Jobs by their minute, and a controller by a suffix of digits.
_NUMBERED = re.compile(r"-[0-9]+$")
_HASH = "pod-template-hash"


@dataclass(frozen=True, slots=True, kw_only=True)
class PastPods:
    """How the pods of one workload left.

    `end_s`: the median time from a pod's eviction to its end. `grace_s`: the longest that they had.
    `refill_s`: how long their budget took to let the next pods go; None if it held none.
    """

    workload: str
    end_s: float
    grace_s: float
    refill_s: float | None = None


def workload_name(pod: Pod) -> str:
    """Return what stays the same of a pod's owner from night to night: `default/ReplicaSet/web`."""
    kind, _, name = (pod.owner or f"Pod/{pod.name}").partition("/")
    # Kubernetes: a ReplicaSet's name ends in the hash of its template, which changes with each rollout.
    name = name.removesuffix(f"-{pod.labels[_HASH]}") if _HASH in pod.labels else name
    return f"{pod.namespace}/{kind}/{_NUMBERED.sub('', name)}"


def pods_document(pods: PastPods) -> dict[str, Any]:
    refill = {} if pods.refill_s is None else {"refillSeconds": round(pods.refill_s, 3)}
    return {"workload": pods.workload, "endSeconds": round(pods.end_s, 3), "graceSeconds": pods.grace_s} | refill


def read_pods(found: Any) -> PastPods:
    found = bounded.fields(found, "pods")
    refill = found.get("refillSeconds")
    return PastPods(
        workload=bounded.text(found.get("workload"), "pods.workload"),
        end_s=bounded.seconds(found.get("endSeconds"), "pods.endSeconds"),
        grace_s=bounded.seconds(found.get("graceSeconds"), "pods.graceSeconds"),
        refill_s=None if refill is None else bounded.seconds(refill, "pods.refillSeconds"),
    )
