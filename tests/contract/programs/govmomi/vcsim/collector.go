package main

import (
	"slices"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// PropertyCollector is vcsim's, without its deadlock. There, a change of an object that is a root of a filter with a
// traversal takes the filter's lock under the object's; WaitForUpdatesEx takes the objects' locks under the filter's.
// Several suspends at once under an open wait so locked a VM for ever. The name is the type's on the wire.
type PropertyCollector struct{ simulator.PropertyCollector }

func wrapPropertyCollector(ctx *simulator.Context) {
	singleton := &PropertyCollector{}
	singleton.Self = ctx.Map.Get(vim25.ServiceInstance).(*simulator.ServiceInstance).Content.PropertyCollector
	ctx.Map.Put(singleton)
	ctx.Map.AddHandler(reconfigured{})
}

// CreatePropertyCollector gives each client one of ours.
func (*PropertyCollector) CreatePropertyCollector(
	ctx *simulator.Context, _ *types.CreatePropertyCollector,
) soap.HasFault {
	own := ctx.Session.Put(&PropertyCollector{}).Reference()
	return &methods.CreatePropertyCollectorBody{Res: &types.CreatePropertyCollectorResponse{Returnval: own}}
}

// CreateFilter lets a filter hear of its roots' changes only where they are views, whose members come and go. For other
// roots the collector walks every traversal again on each change anyhow, and `reconfigured` tells the rest.
func (c *PropertyCollector) CreateFilter(ctx *simulator.Context, request *types.CreateFilter) soap.HasFault {
	answer := c.PropertyCollector.CreateFilter(ctx, request).(*methods.CreateFilterBody)
	for _, root := range request.Spec.ObjectSet {
		if strings.HasSuffix(root.Obj.Type, "View") {
			return answer
		}
	}
	ctx.Map.RemoveHandler(ctx.Session.Get(answer.Res.Returnval).(simulator.RegisterObject))
	return answer
}

// reconfigured tells what a reconfiguration has changed. vcsim sets these leaves without a word; its clients saw them
// only because a filter with the VM as root began anew, which is what locked.
type reconfigured struct{}

func (reconfigured) Reference() types.ManagedObjectReference {
	return types.ManagedObjectReference{Type: "Handler", Value: "reconfigured"}
}

func (reconfigured) PutObject(*simulator.Context, mo.Reference) {}

func (reconfigured) RemoveObject(*simulator.Context, types.ManagedObjectReference) {}

// UpdateObject is called with the VM's lock held. A new change version is the last thing that a reconfiguration sets.
func (reconfigured) UpdateObject(ctx *simulator.Context, changed mo.Reference, changes []types.PropertyChange) {
	vm, ok := changed.(*mo.VirtualMachine)
	if !ok || !slices.ContainsFunc(changes, func(c types.PropertyChange) bool { return c.Name == "config.changeVersion" }) {
		return
	}
	told := []types.PropertyChange{
		{Name: "config.hardware.device", Val: slices.Clone(vm.Config.Hardware.Device)},
		{Name: "config.extraConfig", Val: slices.Clone(vm.Config.ExtraConfig)},
	}
	if locked := vm.Config.MemoryReservationLockedToMax; locked != nil {
		told = append(told, types.PropertyChange{Name: "config.memoryReservationLockedToMax", Val: *locked})
	}
	ctx.Update(vm, told)
}
