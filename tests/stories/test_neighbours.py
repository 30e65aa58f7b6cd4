"""Each host whose night cannot end well is refused for its own reason, with the way out; the others proceed."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from pyVim.connect import Disconnect, SmartConnect
from pyVmomi import vim

from tests.support.lab import Lab

ESTATE = """\
version: 1
hosts:
  - {name: esx-good, cards: [V100-16], memory: 512GiB}
  - {name: esx-card, cards: [V100-16], memory: 512GiB}
  - {name: esx-memory, cards: [V100-16], memory: 512GiB}
  - {name: esx-profile, cards: [V100-16], memory: 512GiB, unsuspendable: [grid_v100-4q]}
  - {name: esx-sriov, cards: [V100-16], memory: 512GiB}
  - {name: esx-traced, cards: [V100-16], memory: 512GiB}
  - {name: esx-elsewhere, cards: [V100-16], memory: 512GiB}
  - {name: esx-managed, cards: [V100-16], memory: 512GiB}
  - {name: esx-asks, cards: [V100-16], memory: 512GiB}
  - {name: esx-busy, cards: [V100-16], memory: 512GiB}
  - {name: esx-bare, cards: [V100-16], memory: 512GiB}
  - {name: esx-space, cards: [V100-16], memory: 512GiB}
profiles: {small: grid_v100-4q, large: grid_v100-16q}
workers:
  - {name: day-good, host: esx-good, profile: small, power: on, vgpus: grid_v100-4q}
  - {name: day-card, host: esx-card, profile: small, power: on, vgpus: grid_v100-4q}
  - {name: night-card, host: esx-card, profile: large, vgpus: grid_v100-16q}
  - {name: day-memory, host: esx-memory, profile: small, power: on, vgpus: grid_v100-4q}
  - {name: night-memory, host: esx-memory, profile: large, vgpus: grid_v100-16q, memory: 500GiB}
  - {name: day-profile, host: esx-profile, profile: small, power: on, vgpus: grid_v100-4q}
  - {name: day-sriov, host: esx-sriov, profile: small, power: on, vgpus: grid_v100-4q, sriov: true}
  - {name: day-traced, host: esx-traced, profile: small, power: on, vgpus: grid_v100-4q,
     extra-config: {pciPassthru0.cfg.enable_uvm: 1}}
  - {name: day-elsewhere, host: esx-elsewhere, profile: small, power: on, vgpus: grid_v100-4q, suspend-datastore: tiny}
  - {name: day-managed, host: esx-managed, profile: small, power: on, vgpus: grid_v100-4q, managed-by: com.vmware.wcp}
  - {name: night-asks, host: esx-asks, profile: large, vgpus: grid_v100-16q, question: "Moved or copied?"}
  - {name: day-busy, host: esx-busy, profile: small, power: on, vgpus: grid_v100-4q}
  - {name: day-bare, host: esx-bare, profile: small, power: on, vgpus: grid_v100-4q}
  - {name: night-good, host: esx-good, profile: large, vgpus: grid_v100-16q}
  - {name: day-space, host: esx-space, profile: small, power: on, vgpus: grid_v100-4q, memory: 300GiB}
others:
  - {name: infra-1, host: esx-good, power: on}
  - {name: stranger, host: esx-card, power: on, vgpus: grid_v100-4q, node: false}
  - {name: database, host: esx-memory, power: on, memory: 64GiB, reserved: true, node: false}
shifts: {day: small, night: large}
workloads: []
datastore: {free: 256GiB}
datastores: {tiny: 8GiB}
"""
#: Of each host: the code of its refusal, what it says, and what it advises.
REASONS = {
    "esx-card": ("VG301", "no card will have room for night-card", "give it a smaller profile"),
    "esx-memory": ("VG303", "its memory will not hold night-memory", "give it less memory"),
    "esx-profile": (
        "VG106",
        "day-profile cannot be suspended: esx-profile cannot suspend",
        "another profile",
    ),
    "esx-sriov": (
        "VG105",
        "day-sriov cannot be suspended: it has an SR-IOV network card",
        "Take the device off",
    ),
    "esx-traced": (
        "VG115",
        "day-traced cannot be suspended: its setting pciPassthru0.cfg.enable_uvm is on",
        "Remove the setting",
    ),
    "esx-elsewhere": ("VG304", "and the datastore tiny has 8 GB free for it", "Make room there"),
    "esx-managed": ("VG102", "day-managed is managed by com.vmware.wcp", "Change it there"),
    "esx-asks": (
        "VG103",
        "night-asks waits for an answer in vCenter: Moved or copied?",
        "Answer it in the vSphere",
    ),
    "esx-busy": (
        "VG104",
        "day-busy has a task in vCenter that is not ours (reconfigure)",
        "Wait until that task has",
    ),
    "esx-bare": ("VG202", "day-bare cannot be drained: 2 pods may not be deleted", "Remove these pods"),
    "esx-space": ("VG304", "to suspend day-space writes 300 GB", "Make room there"),
}


def somebody_is_at_work(lab: Lab) -> None:
    """One reconfigures a VM, which takes its time; one starts another, which asks first."""
    lab.fault("ReconfigVM_Task", "task-hangs", on="day-busy")
    env = lab.env
    trust = ssl.create_default_context(cafile=env["GOVC_TLS_CA_CERTS"])
    url = urlparse(env["GOVC_URL"])
    login = {"user": env["GOVC_USERNAME"], "pwd": env["GOVC_PASSWORD"], "sslContext": trust}
    client: Any = SmartConnect(host=url.hostname, port=url.port, **login)
    vm = client.RetrieveContent().searchIndex.FindByInventoryPath("dc/vm/day-busy")
    vm.ReconfigVM_Task(vim.vm.ConfigSpec(annotation="x"))
    Disconnect(client)
    lab.person("power-on night-asks")


def bare_pod(lab: Lab, name: str, node: str) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "one"}]},
    }
    path = lab.folder / f"{name}.json"
    path.write_text(json.dumps(pod))
    lab.kubectl("create", "-f", str(path)).ok()


def test_each_reason_refuses_its_own_host(make_lab: Callable[..., Lab], tmp_path: Path) -> None:
    path = tmp_path / "estate.yaml"
    path.write_text(ESTATE)
    lab = make_lab("--instant", "--scenario", str(path))
    somebody_is_at_work(lab)
    for n in (1, 2):
        bare_pod(lab, f"bare-{n}", "day-bare")
    lab.calls()
    said = json.loads(lab.vgpuctl("switch", "night", "--dry-run", "-o", "json").out)
    told = {each["host"]: (each["code"], each["message"], each["hint"]) for each in said["refusals"]}
    assert set(told) == set(REASONS)
    for host, (code, reason, way_out) in REASONS.items():
        assert told[host][0] == code
        assert reason in told[host][1]
        assert way_out in told[host][2]
    assert {step["host"] for step in said["steps"]} == {"esx-good"}
    (bare,) = (each for each in said["refusals"] if each["host"] == "esx-bare")
    assert [detail.split()[0].rpartition("/")[2] for detail in bare["details"]] == ["bare-1", "bare-2"]
    assert not {name for name in lab.calls()["vcenter"] if name.endswith("_Task")}
    lab.vgpuctl("switch", "night", "--yes")
    calls = lab.calls()["vcenter"]
    assert {name: calls[name] for name in calls if name.endswith("_Task")} == {"SuspendVM_Task": 1, "PowerOnVM_Task": 1}
