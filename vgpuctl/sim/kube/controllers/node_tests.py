"""Which nodes a pod may run on: by its selector and affinity, and by the nodes' taints."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from vgpuctl.sim.kube.api.selectors import expression_test
from vgpuctl.sim.kube.objects import Object, at, labels_of, name_of, tolerates

NodeTest = Callable[[Object], bool]
_REQUIRED = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"


def node_test(spec: Object) -> NodeTest:
    """Return the test for a pod's nodeSelector and required node affinity."""
    wanted = (spec.get("nodeSelector") or {}).items()
    terms = at(spec, _REQUIRED)
    tests = None if terms is None else [_term(term) for term in terms]

    def test(node: Object) -> bool:
        labels = labels_of(node)
        # Kubernetes: nodeSelector and affinity must both fit; of the affinity's terms, one must.
        return wanted <= labels.items() and (tests is None or any(each(node) for each in tests))

    return test


def named_nodes(spec: Object) -> list[str] | None:
    """Return the only nodes that the pod's affinity names, or None if it names none. A daemon's pod names one."""
    terms = at(spec, _REQUIRED)
    if not terms:
        return None
    names: list[str] = []
    for term in terms:
        fields = term.get("matchFields") or []
        if not fields or fields[0]["operator"] != "In":
            return None
        names += fields[0].get("values") or []
    return names


def lacks_toleration(pod: Object, taints: Iterable[Object]) -> bool:
    return any(not tolerates(pod, taint) for taint in taints)


def hard_taints(node: Object) -> list[Object]:
    # Kubernetes: PreferNoSchedule only lowers a node's score.
    return [taint for taint in node["spec"].get("taints") or [] if taint["effect"] != "PreferNoSchedule"]


def _term(term: Object) -> NodeTest:
    """Return the test for one term. A term without requirements matches nothing."""
    labels = [expression_test(each) for each in term.get("matchExpressions") or []]
    names = [expression_test(each) for each in term.get("matchFields") or []]

    def test(node: Object) -> bool:
        by_name = {"metadata.name": name_of(node)}
        by_label = labels_of(node)
        return all(each(by_label) for each in labels) and all(each(by_name) for each in names)

    return test if labels or names else lambda node: False
