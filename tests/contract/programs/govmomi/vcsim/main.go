// vcsim: govmomi's vCenter simulator as the tests need it, on a port of loopback: VMs named worker-1, worker-2 … and all
// off, hosts esx-1 …, tasks that take time, and V100 cards. It enforces no capacity: any number of vGPUs starts.
package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"log"
	"net/url"
	"os"
	"os/signal"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

func main() {
	model := simulator.VPX()
	model.Host, model.Cluster, model.Autostart = 0, 1, false
	flag.IntVar(&model.ClusterHost, "hosts", 1, "hosts in the cluster")
	flag.IntVar(&model.Machine, "vms", 5, "VMs")
	listen := flag.String("listen", "127.0.0.1:0", "where to listen; port 0 takes a free one")
	user := flag.String("user", "user", "who may log in; the password is taken from VCSIM_PASSWORD")
	delays := flag.String("task-delay", "", "how long tasks take, such as Suspend:3000,PowerOn:4000 (ms)")
	cards := flag.Int("cards", 1, "V100-16 cards in each host")
	flag.Parse()
	if err := model.Create(); err != nil {
		log.Fatal(err)
	}
	setTaskDelays(*delays)
	ctx := model.Service.Context
	rename(ctx, "VirtualMachine", "worker")
	rename(ctx, "HostSystem", "esx")
	wrapPropertyCollector(ctx)
	offerProfiles(ctx)
	go func() {
		for range time.Tick(100 * time.Millisecond) {
			seat(ctx, *cards)
		}
	}()
	model.Service.TLS = new(tls.Config)
	model.Service.Listen = &url.URL{Host: *listen, User: url.UserPassword(*user, os.Getenv("VCSIM_PASSWORD"))}
	model.Service.RegisterEndpoints = true
	server := model.Service.NewServer()
	fmt.Println("listening on", server.URL.Host)
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, os.Interrupt, syscall.SIGTERM)
	<-ended
	server.Close()
}

// setTaskDelays reads name:milliseconds pairs. Without the hand-over of the lock, an object can be read while its task
// waits, as in a real vCenter.
func setTaskDelays(pairs string) {
	simulator.TaskDelay.MethodDelay = map[string]int{"LockHandoff": 0}
	for _, pair := range strings.Split(pairs, ",") {
		if name, text, ok := strings.Cut(pair, ":"); ok {
			milliseconds, err := strconv.Atoi(text)
			if err != nil {
				log.Fatal(err)
			}
			simulator.TaskDelay.MethodDelay[name] = milliseconds
		}
	}
}

// rename gives all objects of a kind names that a Kubernetes node can have, too.
func rename(ctx *simulator.Context, kind, stem string) {
	entities := ctx.Map.All(kind)
	sort.Slice(entities, func(i, j int) bool { return name(entities[i]) < name(entities[j]) })
	for i, entity := range entities {
		changed := fmt.Sprintf("%s-%d", stem, i+1)
		changes := []types.PropertyChange{{Name: "name", Val: changed}}
		if kind == "VirtualMachine" {
			for _, path := range []string{"config.name", "summary.config.name"} {
				changes = append(changes, types.PropertyChange{Name: path, Val: changed})
			}
		} else {
			changes = append(changes, types.PropertyChange{Name: "summary.config.name", Val: changed})
		}
		ctx.Map.AtomicUpdate(ctx, entity, changes)
	}
}

func name(entity mo.Entity) string { return entity.Entity().Name }
