package main

import (
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/methods"
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
}

// CreatePropertyCollector gives each client one of ours.
func (*PropertyCollector) CreatePropertyCollector(
	ctx *simulator.Context, _ *types.CreatePropertyCollector,
) soap.HasFault {
	own := ctx.Session.Put(&PropertyCollector{}).Reference()
	return &methods.CreatePropertyCollectorBody{Res: &types.CreatePropertyCollectorResponse{Returnval: own}}
}

// CreateFilter lets a filter hear of its roots' changes only where they are views, whose members come and go. For other
// roots nothing is lost: the collector walks every traversal again on each change anyhow.
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
