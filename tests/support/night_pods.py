"""The pods of simulated nights: workloads of several kinds, a batch with another grace each night, and what refuses."""

from __future__ import annotations

import random
from dataclasses import dataclass

from vgpuctl.kube.client import Object

APPS = "/apis/apps/v1/namespaces/default/deployments"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
PODS = "/api/v1/namespaces/default/pods"
BATCH_GRACES_S = (120, 300, 600, 900)


@dataclass(frozen=True, slots=True)
class Kind:
    """A workload. `end_s`: how long its pods take to end by themselves; they are killed when their grace is over.

    `most_out`: what its budget allows; None: it has no budget.
    """

    name: str
    replicas: int
    grace_s: int
    end_s: float
    most_out: int | None = None


def drawn_kind(chance: random.Random, name: str, workers: int) -> Kind:
    grace_s = chance.choice([5, 30, 30, 60, 120, 300])
    end_s = chance.choice([1.0, 2.0, 20.0, 1000.0])
    most_out = chance.choice([None, None, 1, 1, 2])
    return Kind(name, chance.randrange(1, 2 * workers + 2), grace_s, end_s, most_out)


def drawn_batch(chance: random.Random) -> Kind:
    return Kind("batch", 2, BATCH_GRACES_S[0], chance.choice([30.0, 200.0, 1000.0]))


def deployment(kind: Kind) -> Object:
    template = {"metadata": {"labels": {"app": kind.name}}, "spec": _pod_spec(kind.grace_s)}
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": kind.name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": kind.name}, "spec": spec}


def bare_pod(name: str, node: str) -> Object:
    """Return a pod that no controller would replace. A drain may not delete it."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {**_pod_spec(30), "nodeName": node}}


def budget(name: str, app: str, most_out: int) -> Object:
    spec = {"maxUnavailable": most_out, "selector": {"matchLabels": {"app": app}}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec}


def _pod_spec(grace_s: int) -> Object:
    # So little that the one node that stays has room for all of them.
    container = {"name": "main", "image": "one", "resources": {"requests": {"cpu": "10m"}}}
    return {"containers": [container], "terminationGracePeriodSeconds": grace_s}
