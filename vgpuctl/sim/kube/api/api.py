"""The API as a function: a request in, a reply or a watch out. HTTP and simulations in one process both call it."""

from __future__ import annotations

from vgpuctl.sim.kube.access.attributes import attributes_of
from vgpuctl.sim.kube.access.rbac import Authorizer
from vgpuctl.sim.kube.access.reviews import Reviews
from vgpuctl.sim.kube.access.tokens import Tokens
from vgpuctl.sim.kube.api import deleting, discovery, errors, protobuf, reading, tables, writing
from vgpuctl.sim.kube.api.kinds import in_groups
from vgpuctl.sim.kube.api.pages import Pages
from vgpuctl.sim.kube.api.request import Reply, Request, Target, target_of
from vgpuctl.sim.kube.api.watching import Watch
from vgpuctl.sim.kube.objects import Object
from vgpuctl.sim.kube.world import KubernetesWorld


class Api:
    def __init__(self, world: KubernetesWorld) -> None:
        self._context = world.context
        self._served = in_groups(world.kinds)
        self.clock = world.clock
        self._pages = Pages(world.clock, world.store)
        self.watches: set[Watch] = set()
        self.authorizer = Authorizer(world.store)
        self.tokens = Tokens(world.clock, world.store)
        self._reviews = Reviews(self.authorizer)

    def answer(self, request: Request, target: Target | None = None) -> Reply | Watch:
        """Return the reply or watch, or raise ApiError. `target`: what the path names, if the caller has it already."""
        # Kubernetes: authorization comes before everything else, so 403 also where there is no such object.
        self.authorizer.check(request)
        if found := discovery.answer(request, self._served) or self._reviews.answer(request):
            return found
        target = target or target_of(request.path)
        # Kubernetes: a custom resource exists only once its definition does.
        if target.kind.group not in self._served:
            raise errors.no_such_resource()
        # Measured: kube-apiserver 1.36 answers 405 to a DELETE or POST of /api/v1/pods.
        if request.method != "GET" and target.is_everywhere:
            raise errors.method_not_allowed()
        match request.method, target.subresource, bool(target.name):
            case "POST", "eviction", _:
                reply: Reply | Watch = deleting.evict(self._context, request, target)
            case "POST", "token", _:
                reply = Reply(
                    201, self.tokens.give(reading.existing(self._context.store, target), protobuf.document_of(request))
                )
            # Kubernetes: `eviction` can only be created; status and scale can be read and changed.
            case "GET", "" | "status" | "scale", _:
                reply = self._read(request, target)
            case "POST", "", False:
                reply = self._single(request, target, writing.create(self._context, request, target), 201)
            case "PUT", "", True if target.kind.made_by_put and reading.is_absent(self._context.store, target):
                # Measured: kube-apiserver 1.36 wants the right to create here, too.
                self.authorizer.demand(request.user, attributes_of("POST", request.path, request.query))
                reply = self._single(request, target, writing.make(self._context, request, target), 201)
            case "PUT", "" | "status" | "scale", True:
                reply = self._single(request, target, writing.replace(self._context, request, target))
            case "PATCH", "" | "status" | "scale", True:
                reply = self._single(request, target, writing.patch(self._context, request, target))
            case "DELETE", "", _:
                reply = self._delete(request, target)
            case _:
                raise errors.method_not_allowed()
        return reply

    def _read(self, request: Request, target: Target) -> Reply | Watch:
        if request.watch and not target.subresource:
            watch = Watch(self._context, request, target)
            self.watches.add(watch)
            return watch
        store = self._context.store
        if target.name:
            return self._single(request, target, reading.get(store, target))
        items, metadata = reading.page(store, self._pages, request, target)
        if request.wants_table:
            return Reply(200, self.table(request, target, items, metadata))
        return reading.listing(target.kind, items, metadata)

    def _delete(self, request: Request, target: Target) -> Reply:
        if target.name:
            return deleting.delete(self._context, request, target)
        # Measured: kube-apiserver 1.36 deletes all nodes if it is asked to, and never all namespaces.
        if target.kind.plural == "namespaces":
            raise errors.method_not_allowed()
        items = deleting.delete_collection(self._context, request, target)
        return reading.listing(target.kind, items, {"resourceVersion": str(self._context.store.version)})

    def _single(self, request: Request, target: Target, item: Object, code: int = 200) -> Reply:
        if request.wants_table and not target.subresource:
            metadata = {"resourceVersion": item["metadata"].get("resourceVersion", "")}
            return Reply(code, self.table(request, target, [item], metadata))
        return Reply(code, item)

    def table(self, request: Request, target: Target, items: list[Object], metadata: Object) -> Object:
        options = tables.TableOptions(self._context.clock.utc(), request.query.get("includeObject", "Metadata"))
        return tables.table(target.kind, items, metadata, options)
