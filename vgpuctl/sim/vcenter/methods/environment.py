"""The EnvironmentBrowser: what a VM can be given on the cluster's hosts, or on one of them."""

from __future__ import annotations

from typing import Any

from vgpuctl.sim.vcenter.inventory.host_properties import CORES, vgpu_types
from vgpuctl.sim.vcenter.methods.graphics import devices, profiles
from vgpuctl.sim.vcenter.physics.records import Host
from vgpuctl.sim.vcenter.wire import faults
from vgpuctl.sim.vcenter.wire.dispatch import Call, handles
from vgpuctl.sim.vcenter.wire.vmomi import vim


@handles("QueryConfigTarget")
def query_config_target(call: Call, host: Any) -> Any:
    hosts = _hosts(call, host)
    types = dict.fromkeys(vgpu for each in hosts for vgpu in vgpu_types(each))
    return vim.vm.ConfigTarget(
        numCpus=2 * CORES,
        numCpuCores=CORES,
        numNumaNodes=2,
        maxCpusPerHost=2 * CORES,
        smcPresent=False,
        maxMemMBOptimalPerf=min((each.spec.memory_mib for each in hosts), default=0),
        sharedGpuPassthroughTypes=[vim.vm.PciSharedGpuPassthroughInfo(name=vgpu, vgpu=vgpu) for vgpu in types],
        vgpuDeviceInfo=devices(hosts),
        vgpuProfileInfo=profiles(hosts),
    )


def _hosts(call: Call, ref: Any) -> list[Host]:
    if ref is None:
        return list(call.subject.hosts)
    if not call.center.find(ref, call.session):
        raise faults.not_found(ref)
    return [call.center.subject(ref)]
