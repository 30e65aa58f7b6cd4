"""Which nodes a pod may run on at all: by its selector and affinity, and by the nodes' taints."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from vgpuctl.sim.kube.api.selectors import expression_test
from vgpuctl.sim.kube.objects import Object, at, labels_of, name_of, tolerates

NodeTest = Callable[[Object], bool]
_REQUIRED = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"


def chosen_nodes(spec: Object) -> NodeTest:
    """What a pod's nodeSelector and required node affinity say of a node."""
    wanted = (spec.get("nodeSelector") or {}).items()
    terms = at(spec, _REQUIRED)
    tests = None if terms is None else [_term(term) for term in terms]

    def test(node: Object) -> bool:
        labels = labels_of(node)
        return wanted <= labels.items() and (tests is None or any(each(node) for each in tests))

    return test


def named_nodes(spec: Object) -> list[str] | None:
    """The only nodes that can be meant, where the pod names them; a daemon's pod does."""
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


def untolerated(pod: Object, taints: Iterable[Object]) -> bool:
    return any(not tolerates(pod, taint) for taint in taints)


def keeps_pods_off(node: Object) -> list[Object]:
    return [taint for taint in node["spec"].get("taints") or [] if taint["effect"] != "PreferNoSchedule"]


def _term(term: Object) -> NodeTest:
    """A term without any requirement matches nothing."""
    labels = [expression_test(each) for each in term.get("matchExpressions") or []]
    names = [expression_test(each) for each in term.get("matchFields") or []]

    def test(node: Object) -> bool:
        by_name = {"metadata.name": name_of(node)}
        by_label = labels_of(node)
        return all(each(by_label) for each in labels) and all(each(by_name) for each in names)

    return test if labels or names else lambda node: False
