package main

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

const cardGiB = 16

// offerProfiles lets each host say which vGPU types it has.
func offerProfiles(ctx *simulator.Context) {
	offered := []string{}
	capabilities := []types.HostSharedGpuCapabilities{}
	for _, size := range []string{"1q", "2q", "4q", "8q", "16q", "4c", "8c", "16c"} {
		vgpu := "grid_v100-" + size
		offered = append(offered, vgpu)
		capabilities = append(capabilities,
			types.HostSharedGpuCapabilities{Vgpu: vgpu, SuspendSupported: true, MigrateSupported: true})
	}
	for _, host := range ctx.Map.All("HostSystem") {
		ctx.Map.AtomicUpdate(ctx, host, []types.PropertyChange{
			{Name: "config.sharedPassthruGpuTypes", Val: offered},
			{Name: "config.sharedGpuCapabilities", Val: capabilities},
		})
	}
}

// seat makes each host tell which running vGPU VMs sit on its cards: in order, by frame buffer. One object's lock at a
// time, never two.
func seat(ctx *simulator.Context, cards int) {
	seats := map[types.ManagedObjectReference][]seated{}
	for _, entity := range ctx.Map.All("VirtualMachine") {
		vm := entity.(*simulator.VirtualMachine)
		ctx.WithLock(vm, func() {
			if vm.Runtime.PowerState == types.VirtualMachinePowerStatePoweredOn {
				for _, gib := range frames(vm) {
					seats[*vm.Runtime.Host] = append(seats[*vm.Runtime.Host], seated{vm.Self, gib})
				}
			}
		})
	}
	for _, entity := range ctx.Map.All("HostSystem") {
		host := entity.(*simulator.HostSystem)
		info := filled(cards, seats[host.Self])
		ctx.WithLock(host, func() {
			if !reflect.DeepEqual(info, host.Config.GraphicsInfo) {
				ctx.Update(host, []types.PropertyChange{{Name: "config.graphicsInfo", Val: info}})
			}
		})
	}
}

type seated struct {
	vm  types.ManagedObjectReference
	gib int
}

// frames are the frame buffers of a VM's vGPUs.
func frames(vm *simulator.VirtualMachine) (found []int) {
	for _, device := range vm.Config.Hardware.Device {
		if pci, ok := device.(*types.VirtualPCIPassthrough); ok {
			if backing, ok := pci.Backing.(*types.VirtualPCIPassthroughVmiopBackingInfo); ok {
				gib := cardGiB
				fmt.Sscanf(backing.Vgpu[strings.LastIndex(backing.Vgpu, "-")+1:], "%d", &gib)
				found = append(found, gib)
			}
		}
	}
	return found
}

func filled(cards int, vms []seated) []types.HostGraphicsInfo {
	info := make([]types.HostGraphicsInfo, cards)
	free := make([]int, cards)
	for i := range info {
		free[i] = cardGiB
		info[i] = types.HostGraphicsInfo{
			DeviceName: "Tesla V100-PCIE-16GB", VendorName: "NVIDIA Corporation", GraphicsType: "sharedDirect",
			PciId: fmt.Sprintf("0000:%02x:00.0", 0x3b+i), MemorySizeInKB: cardGiB << 20,
		}
	}
	for _, one := range vms {
		for i := range info {
			if free[i] >= one.gib {
				free[i] -= one.gib
				info[i].Vm = append(info[i].Vm, one.vm)
				break
			}
		}
	}
	return info
}
