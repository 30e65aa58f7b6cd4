"""The Kubernetes objects that run the daemon, beside the rights that its account gets (manifests.py)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from vgpuctl.kube.manifests import Object
from vgpuctl.kube.rights import OURS
from vgpuctl.model.record import FACT_LABELS, STATE_LABEL

#: Where the container finds its files and its password.
FILES_FOLDER, PASSWORD_FOLDER = "/etc/vgpuctl", "/run/vcenter"
PASSWORD_KEY = "password"  # noqa: S105
SETTINGS_FILE = "config.yaml"
#: The ConfigMap `vgpuctl` is the ledger of orders and departures.
FILES_MAP = f"{OURS}-files"
#: A user of no machine: 65532 is `nonroot` in the images that have such a user.
USER = 65532
LABELS = {"app.kubernetes.io/name": OURS, "app.kubernetes.io/component": "daemon"}
#: Kubernetes: Pod Security, the strictest level.
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """One daemon, deployed. `files`: the ConfigMap's keys, each with its path below FILES_FOLDER and its text.

    `account`: the ServiceAccount. `secret`: the Secret with vCenter's password. `worker_label`: the label that workers'
    nodes bear by our files. `ports`: those of vCenter and of the API server behind its Service.
    """

    namespace: str
    account: str
    image: str
    replicas: int
    secret: str
    files: Mapping[str, tuple[str, str]]
    worker_label: str
    ports: tuple[int, ...]
    arguments: tuple[str, ...] = ()

    def objects(self) -> Iterator[tuple[Object, str]]:
        """Yield each object with the reason for it, in the order in which they can be created."""
        yield self._files(), "The daemon's settings and files. It follows changes of profiles and timetables."
        yield self._budget(), "A drain of a control-plane node never takes both daemons at once."
        yield self._network(), "It is called by no program, and calls vCenter, Kubernetes and DNS only."
        yield self._deployment(), "One daemon leads; the other takes over within the Lease's duration and two seconds."

    def _files(self) -> Object:
        data = {key: text for key, (_, text) in self.files.items()}
        return self._object("v1", "ConfigMap", FILES_MAP) | {"data": data}

    def _budget(self) -> Object:
        # `minAvailable: 1` with one replica would let no node be drained.
        spec = {"maxUnavailable": 1, "selector": {"matchLabels": LABELS}, "unhealthyPodEvictionPolicy": "AlwaysAllow"}
        return self._object("policy/v1", "PodDisruptionBudget", OURS) | {"spec": spec}

    def _network(self) -> Object:
        # Kubernetes: the packets to the API server's Service arrive at its pods' own port.
        tcp = [{"port": port, "protocol": "TCP"} for port in sorted({53, 443, *self.ports})]
        spec = {
            "podSelector": {"matchLabels": LABELS},
            "policyTypes": ["Ingress", "Egress"],
            "egress": [{"ports": [{"port": 53, "protocol": "UDP"}, *tcp]}],
        }
        return self._object("networking.k8s.io/v1", "NetworkPolicy", OURS) | {"spec": spec}

    def _deployment(self) -> Object:
        # The daemon reads its settings only at its start, so other settings are another pod.
        settings = "".join(
            text for key, (_, text) in self.files.items() if not key.startswith(("profiles", "schedule"))
        )
        digest = hashlib.sha256(settings.encode()).hexdigest()[:16]
        metadata = {"labels": LABELS, "annotations": {"vgpuctl.io/settings": digest}}
        spec = {
            "replicas": self.replicas,
            "selector": {"matchLabels": LABELS},
            # The one that stands by is exchanged first, without a third.
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {"metadata": metadata, "spec": self._pod()},
        }
        return self._object("apps/v1", "Deployment", OURS) | {"spec": spec}

    def _pod(self) -> Object:
        return {
            "serviceAccountName": self.account,
            # Kubernetes: a Service `vgpuctl` would set variables that begin like our own settings.
            "enableServiceLinks": False,
            # The daemon ends within 20 seconds: the requests in flight are finished.
            "terminationGracePeriodSeconds": 60,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": USER,
                "runAsGroup": USER,
                # Without it, the user could not read a Secret of mode 0400, which is root's.
                "fsGroup": USER,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "affinity": {"nodeAffinity": self._off_workers()},
            # In many clusters the nodes that are no workers are the control plane's.
            "tolerations": [
                {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}
            ],
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": "kubernetes.io/hostname",
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": {"matchLabels": LABELS},
                }
            ],
            "containers": [self._container()],
            "volumes": self._volumes(),
        }

    def _off_workers(self) -> Object:
        """Return the affinity that keeps the daemon off each node that it could put to sleep."""
        labels = dict.fromkeys((self.worker_label, STATE_LABEL, *FACT_LABELS))
        expressions = [{"key": key, "operator": "DoesNotExist"} for key in labels]
        return {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
        }

    def _container(self) -> Object:
        return {
            "name": OURS,
            "image": self.image,
            "args": ["daemon", "--config", f"{FILES_FOLDER}/{SETTINGS_FILE}", *self.arguments],
            # With its node's name the daemon refuses to run on a worker, should the affinity not have prevented it.
            "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
            # Measured: 100 MiB for 10,000 VMs and 10,000 pods.
            "resources": {"requests": {"cpu": "50m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}},
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            },
            "volumeMounts": [
                # The kubelet does not renew what is mounted with subPath.
                {"name": "files", "mountPath": FILES_FOLDER, "readOnly": True},
                {"name": "login", "mountPath": PASSWORD_FOLDER, "readOnly": True},
            ],
        }

    def _volumes(self) -> list[Object]:
        # One ConfigMap: two would arrive one after the other.
        items = [{"key": key, "path": path} for key, (path, _) in self.files.items()]
        password = [{"key": PASSWORD_KEY, "path": PASSWORD_KEY}]
        return [
            {"name": "files", "configMap": {"name": FILES_MAP, "items": items}},
            # Octal 0400 as the decimal number that JSON has.
            {"name": "login", "secret": {"secretName": self.secret, "items": password, "defaultMode": 0o400}},
        ]

    def _object(self, version: str, kind: str, name: str) -> Object:
        metadata = {"name": name, "namespace": self.namespace, "labels": LABELS}
        return {"apiVersion": version, "kind": kind, "metadata": metadata}
