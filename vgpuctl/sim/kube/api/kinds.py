"""The kinds as data: everything that the generic code needs to know about a resource."""

from __future__ import annotations

from dataclasses import dataclass

STATUS, SCALE, EVICTION, TOKEN = "status", "scale", "eviction", "token"
RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One resource. A new kind is a row here and its columns in `tables`.

    Where the kind has them, too: types of its fields in `shapes`, defaults in `defaults`, fixed fields in `rules`, and
    its fields in `protobuf`, if kubectl has a `create` for it.
    `has_spec`: an object without a spec gets an empty one. `zero_counts`: the counts in the status of a new object.
    `returns_deleted`: the answer to a deletion is the object (Kubernetes: `ReturnDeletedObject`), else a Status.
    `fields`: the field selectors that it supports beside name and namespace; `indexed`: those with an
    index.

    `custom`: defined by a CustomResourceDefinition, so it exists only in some clusters. `any_name`: its names may have
    every character that a path segment may have, such as the `:` of `system:discovery`. `made_by_put`: a PUT makes an
    object that does not exist (Kubernetes: `AllowCreateOnUpdate`). `versioned`: an update must have the version that it
    replaces (Kubernetes: no `AllowUnconditionalUpdate`).
    """

    kind: str
    plural: str
    group: str = ""
    version: str = "v1"
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    indexed: tuple[str, ...] = ()
    generations: bool = False
    custom: bool = False
    has_spec: bool = True
    zero_counts: tuple[str, ...] | None = None
    returns_deleted: bool = False
    any_name: bool = False
    made_by_put: bool = False
    versioned: bool = False

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def singular(self) -> str:
        return self.kind.lower()

    @property
    def qualified(self) -> str:
        """The name in error messages, such as `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


_INVOLVED = tuple(
    f"involvedObject.{part}"
    for part in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
)
#: Kubernetes: the field selectors of each kind are a fixed list; another field is refused with 400.
_EVENT_FIELDS = (*_INVOLVED, "reason", "reportingComponent", "source", "type")
_REGARDING = tuple(field.replace("involvedObject", "regarding") for field in _INVOLVED)

KINDS: tuple[Kind, ...] = (
    Kind(
        kind="Namespace",
        plural="namespaces",
        namespaced=False,
        short_names=("ns",),
        subresources=(STATUS,),
        fields=("status.phase",),
        has_spec=False,
        returns_deleted=True,
    ),
    Kind(
        kind="Node",
        plural="nodes",
        namespaced=False,
        short_names=("no",),
        subresources=(STATUS,),
        fields=("spec.unschedulable",),
    ),
    Kind(
        kind="Pod",
        plural="pods",
        short_names=("po",),
        categories=("all",),
        subresources=(EVICTION, STATUS),
        fields=(
            *("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName"),
            *("spec.hostNetwork", "status.phase", "status.podIP", "status.nominatedNodeName"),
        ),
        # kube-apiserver has this index as well: kubelets ask for the pods of one node.
        indexed=("spec.nodeName",),
        generations=True,
        returns_deleted=True,
    ),
    Kind(kind="Event", plural="events", short_names=("ev",), fields=_EVENT_FIELDS, has_spec=False),
    Kind(kind="ConfigMap", plural="configmaps", short_names=("cm",), has_spec=False),
    Kind(kind="Secret", plural="secrets", fields=("type",), has_spec=False),
    Kind(
        kind="ResourceQuota",
        plural="resourcequotas",
        short_names=("quota",),
        subresources=(STATUS,),
        returns_deleted=True,
    ),
    Kind(
        kind="Service",
        plural="services",
        short_names=("svc",),
        categories=("all",),
        subresources=(STATUS,),
        returns_deleted=True,
    ),
    Kind(
        kind="PersistentVolumeClaim",
        plural="persistentvolumeclaims",
        short_names=("pvc",),
        subresources=(STATUS,),
        returns_deleted=True,
    ),
    Kind(
        kind="ServiceAccount",
        plural="serviceaccounts",
        short_names=("sa",),
        subresources=(TOKEN,),
        has_spec=False,
        returns_deleted=True,
    ),
    Kind(
        group="apps",
        kind="Deployment",
        plural="deployments",
        short_names=("deploy",),
        categories=("all",),
        subresources=(SCALE, STATUS),
        generations=True,
        zero_counts=(),
    ),
    Kind(
        group="apps",
        kind="ReplicaSet",
        plural="replicasets",
        short_names=("rs",),
        categories=("all",),
        subresources=(SCALE, STATUS),
        fields=("status.replicas",),
        generations=True,
        zero_counts=("replicas",),
    ),
    Kind(
        group="apps",
        kind="DaemonSet",
        plural="daemonsets",
        short_names=("ds",),
        categories=("all",),
        subresources=(STATUS,),
        generations=True,
        zero_counts=("currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady"),
    ),
    Kind(
        group="apps",
        kind="StatefulSet",
        plural="statefulsets",
        short_names=("sts",),
        categories=("all",),
        subresources=(SCALE, STATUS),
        generations=True,
        zero_counts=("replicas", "availableReplicas"),
    ),
    Kind(
        group="batch",
        kind="Job",
        plural="jobs",
        categories=("all",),
        subresources=(STATUS,),
        fields=("status.successful",),
        generations=True,
        zero_counts=(),
    ),
    Kind(
        group="autoscaling",
        version="v2",
        kind="HorizontalPodAutoscaler",
        plural="horizontalpodautoscalers",
        short_names=("hpa",),
        categories=("all",),
        subresources=(STATUS,),
    ),
    Kind(
        group="policy",
        kind="PodDisruptionBudget",
        plural="poddisruptionbudgets",
        short_names=("pdb",),
        subresources=(STATUS,),
        generations=True,
    ),
    Kind(
        group="networking.k8s.io",
        kind="NetworkPolicy",
        plural="networkpolicies",
        short_names=("netpol",),
        generations=True,
    ),
    Kind(group="coordination.k8s.io", kind="Lease", plural="leases", made_by_put=True, versioned=True),
    Kind(
        group="storage.k8s.io",
        kind="VolumeAttachment",
        plural="volumeattachments",
        namespaced=False,
        subresources=(STATUS,),
        returns_deleted=True,
    ),
    Kind(
        group="events.k8s.io",
        kind="Event",
        plural="events",
        short_names=("ev",),
        fields=(*_REGARDING, "reason", "reportingController", "type"),
        has_spec=False,
    ),
    Kind(group=RBAC, kind="ClusterRole", plural="clusterroles", namespaced=False, has_spec=False, any_name=True),
    Kind(
        group=RBAC,
        kind="ClusterRoleBinding",
        plural="clusterrolebindings",
        namespaced=False,
        has_spec=False,
        any_name=True,
    ),
    Kind(group=RBAC, kind="Role", plural="roles", has_spec=False, any_name=True),
    Kind(group=RBAC, kind="RoleBinding", plural="rolebindings", has_spec=False, any_name=True),
)

CUSTOM: tuple[Kind, ...] = (
    Kind(
        group="cluster.x-k8s.io",
        version="v1beta2",
        kind="Machine",
        plural="machines",
        short_names=("ma",),
        categories=("cluster-api",),
        subresources=(STATUS,),
        generations=True,
        custom=True,
    ),
)

ALL = KINDS + CUSTOM
Groups = dict[str, tuple[Kind, ...]]

# Events of both groups are the same stored objects, in their core form.
STORED: dict[str, Kind] = {kind.plural: kind for kind in reversed(ALL)}
BY_PATH: dict[tuple[str, str, str], Kind] = {(kind.group, kind.version, kind.plural): kind for kind in ALL}


def in_groups(kinds: tuple[Kind, ...]) -> Groups:
    return {name: tuple(kind for kind in kinds if kind.group == name) for name in dict.fromkeys(k.group for k in kinds)}
