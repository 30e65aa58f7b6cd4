"""Whatever is sent to the simulated vCenter, it answers in its protocol: never a traceback, a bare 500, or nothing."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.physics import without_nodes
from tests.support.soap import Answer, SoapClient, call, envelope
from vgpuctl.sim.inventory import default_inventory
from vgpuctl.sim.vcenter.wire import service
from vgpuctl.sim.vcenter.wire.bodies import MAX_BYTES
from vgpuctl.sim.vcenter.wire.dispatch import HANDLERS
from vgpuctl.sim.vcenter.wire.metadata import wire_name, wire_type
from vgpuctl.sim.vcenter.wire.requests import method_info
from vgpuctl.sim.vcenter.wire.vmomi import support
from vgpuctl.sim.world import World

XSI = "http://www.w3.org/2001/XMLSchema-instance"
SMALL = without_nodes(default_inventory())
METHODS = sorted(HANDLERS)
UNCLEAN = re.compile(
    r"Traceback|object has no attribute|NoneType|line \d+, in |<class|<module|0x[0-9a-f]{6}| object at "
)
THINGS = [
    *[("VirtualMachine", f"vm-{number}") for number in (1, 2, 99)],
    *[("HostSystem", "host-1"), ("Folder", "group-v3"), ("Folder", "group-d1"), ("Datacenter", "datacenter-2")],
    *[("ClusterComputeResource", "domain-c7"), ("ResourcePool", "resgroup-8"), ("Datastore", "datastore-9")],
    *[("PropertyCollector", "propertyCollector"), ("SessionManager", "SessionManager")],
    *[("ManagedObject", "vm-1"), ("ManagedEntity", "vm-1"), ("HostSystem", "vm-1"), ("Nothing", "vm-1")],
    *[("VirtualMachine", ""), ("ViewManager", "ViewManager"), ("Task", "task-1"), ("string", "vm-1")],
]
PATHS = [
    *[
        "name",
        "runtime.powerState",
        "config.hardware.device",
        "config.hardware.device[2000].backing.fileName",
        "parent",
    ],
    *["childEntity", "config", "summary", "info.state", "recentTask[0]", "name[1]", 'config.extraConfig["a.b"].value'],
    *["", ".", "..", "name.", ".name", "a[", "[0]", "name.name", "config.hardware.device[x", "datastore[0].x", "é"],
]
TEXTS = [
    *PATHS,
    "1",
    "0",
    "-1",
    "2147483648",
    "true",
    "x" * 300,
    "2026-01-01T00:00:00",
    "2026-01-01T00:00:00Z",
    "\u2028",
]
TYPES = ["xsd:string", "xsd:int", "xsd:long", "TraversalSpec", "VirtualMachine", "ManagedObjectReference", "Nonsense"]
EVERYTHING = (
    "<specSet><propSet><type>ManagedEntity</type><all>true</all></propSet><propSet><type>Task</type><all>true</all>"
    f'</propSet><objectSet><obj type="Folder">group-v3</obj><selectSet xmlns:xsi="{XSI}" xsi:type="TraversalSpec">'
    "<type>Folder</type><path>childEntity</path>"
    '<selectSet xsi:type="TraversalSpec"><type>VirtualMachine</type><path>recentTask</path></selectSet>'
    "</selectSet></objectSet></specSet>"
)
VERSIONS = sorted({*support.versionIdMap.values(), "", "99.9", "é", "4.0"})


def vcenter_of_its_own() -> SoapClient:
    return SoapClient(World(SMALL))


def assert_protocol(vcenter: SoapClient, answer: Answer) -> None:
    assert vcenter.troubles == []
    assert answer.status in (200, 500)
    assert (answer.fault != "") == (answer.status == 500)
    assert not UNCLEAN.search(answer.message), answer.message
    assert answer.fault != "SystemError"


# Valid requests of every method, from the metadata


@dataclass
class Sender:
    """Writes requests that the metadata allow, or nearly, to and about things that are there, or nearly."""

    chance: random.Random
    things: list[tuple[str, str]]

    def request(self, method: str) -> bytes:
        info = method_info(method)
        given = [self.element(each.name, each) for each in info.params if self._often() or not _optional(each)]
        return call(method, self._thing(info.type), *given)

    def element(self, name: str, info: Any, depth: int = 0) -> str:
        if issubclass(info.type, list):
            return "".join(self._one(name, info.type.Item, depth) for _ in range(self.chance.randrange(3)))
        return self._one(name, info.type, depth)

    def _one(self, name: str, declared: Any, depth: int) -> str:
        if issubclass(declared, support.ManagedObject):
            kind, moid = self._thing(declared)
            return f'<{name} type="{kind}">{escape(moid)}</{name}>'
        if issubclass(declared, support.DataObject):
            return f"<{name}>{self._properties(declared, depth)}</{name}>"
        return f"<{name}>{escape(self._leaf(declared))}</{name}>"

    def _properties(self, declared: Any, depth: int) -> str:
        infos = declared._GetPropertyList()
        wanted = [each for each in infos if not _optional(each) or (depth < 2 and self.chance.random() < 0.3)]
        return "".join(self.element(each.name, each, depth + 1) for each in wanted)

    def _thing(self, declared: Any) -> tuple[str, str]:
        fitting = [thing for thing in self.things if issubclass(_kind(thing[0]), declared)]
        return self.chance.choice(fitting if fitting and self._often() else self.things)

    def _leaf(self, declared: Any) -> str:
        if declared is bool:
            return self.chance.choice(["true", "false"] if self._often() else ["1", "maybe"])
        if declared is type:
            return self.chance.choice(["VirtualMachine", "ManagedEntity", "Folder", "Task", "ListView", "HostSystem"])
        if declared in (int, support.long, support.short, support.byte):
            return self.chance.choice(
                ["1", "2", "16", "2000"] if self._often() else ["0", "-1", "99999999999", "x", ""]
            )
        values = [str(value) for value in getattr(declared, "values", [])]
        return self.chance.choice(values if values and self._often() else TEXTS)

    def _often(self) -> bool:
        return self.chance.random() < 0.9


def _optional(info: Any) -> bool:
    return bool(info.flags & support.F_OPTIONAL)


def _kind(name: str) -> Any:
    try:
        return wire_type(name)
    except KeyError:
        return object


def furnished(vcenter: SoapClient) -> list[tuple[str, str]]:
    """All managers, and one of each thing that a session can own, with what its own methods need to be told."""
    managers = [(wire_name(type(ref)), ref._moId) for ref in service.managers()]
    root = '<container type="Folder">group-d1</container>'
    spec = f"<spec><propSet><type>Folder</type><pathSet>name</pathSet></propSet><objectSet>{root}</objectSet></spec>"
    filtered = spec.replace("container", "obj")
    made = [
        ("CreateContainerView", "ViewManager", "ViewManager", f"{root}<recursive>true</recursive>"),
        ("CreateListView", "ViewManager", "ViewManager", ""),
        ("CreatePropertyCollector", "PropertyCollector", "propertyCollector", ""),
        ("CreateFilter", "PropertyCollector", "propertyCollector", f"{filtered}<partialUpdates>0</partialUpdates>"),
    ]
    owned = []
    for method, kind, moid, arguments in made:
        answer = vcenter.post(call(method, (kind, moid), arguments))
        assert answer.status == 200, answer.message
        owned += re.findall(r'<returnval type="(\w+)">(.+?)</returnval>', answer.body.decode())
    return [*THINGS, *managers, *owned * 3]


def mutated(body: bytes, chance: random.Random) -> bytes:
    text = body.decode()
    changes: list[Callable[[], str]] = [
        *[lambda: text] * 9,
        lambda: text[: chance.randrange(len(text))],
        lambda: text.replace("<", chance.choice(["&", "<<", "<!--"]), 1),
        lambda: re.sub(r">[^<>]+<", lambda _: f">{escape(chance.choice(TEXTS))}<", text, count=chance.randrange(1, 4)),
        lambda: re.sub(r' type="\w+"', f' type="{chance.choice(THINGS)[0]}"', text, count=1),
        lambda: re.sub(r"<(\w+)>", rf'<\1 xmlns:xsi="{XSI}" xsi:type="{chance.choice(TYPES)}">', text, count=2),
        lambda: re.sub(r"<(\w+)>(.*?)</\1>", r"<\1>\2</\1><\1>\2</\1>", text, count=1),
        lambda: re.sub(r"<(\w+)>([^<]*)</\1>", "", text, count=chance.randrange(1, 3)),
        lambda: re.sub(r"</?(\w+)>", lambda found: found[0].replace(found[1], chance.choice(["x", found[1]])), text),
        lambda: text.replace("</_this>", "</_this><unheardOf>1</unheardOf>"),
    ]
    return chance.choice(changes)().encode()


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=6)
@given(seed=st.integers(0, 2**32))
def test_a_request_like_that_of_any_method_is_answered_in_the_protocol(method: str, seed: int) -> None:
    """And what it did, if it did anything, can still be read."""
    chance = random.Random(seed)
    vcenter = vcenter_of_its_own()
    sender = Sender(chance, furnished(vcenter))
    vcenter.world.estate.power_on(vcenter.world.estate.vms["worker-2"])
    for _ in range(5):
        soapaction = f"urn:vim25/{chance.choice(VERSIONS)}"
        answer = vcenter.post(mutated(sender.request(method), chance), {"soapaction": soapaction})
        assert_protocol(vcenter, answer)
        vcenter.world.wait(10)
    if vcenter.world.center.sessions.all():
        answer = vcenter.post(call("RetrieveProperties", ("PropertyCollector", "propertyCollector"), EVERYTHING))
        assert_protocol(vcenter, answer)


# What is no request at all

BOMB = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "x" * 1000}">' for n in range(12))
DEEP = f'<selectSet xmlns:xsi="{XSI}" xsi:type="TraversalSpec">'
NO_REQUESTS = {
    "nothing": b"",
    "text": b"hello",
    "another document": b"<a/>",
    "JSON": b'{"a": 1}',
    "half an envelope": envelope("<CurrentTime/>")[:-20],
    "no method": envelope(""),
    "no object": envelope("<CurrentTime/>"),
    "two methods": envelope('<CurrentTime><_this type="ServiceInstance">x</_this></CurrentTime><Logout/>'),
    "nulls": b"\0" * 50,
    "an entity bomb": f"<!DOCTYPE x [{BOMB}]>".encode() + envelope("<CurrentTime>&e11;</CurrentTime>"),
    "an outside entity": b'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>' + envelope("<a>&e;</a>"),
    "an empty document type": b"<!DOCTYPE x>" + envelope("<a/>"),
    "an unknown entity": envelope("<a>&nobody;</a>"),
    "an encoding that is none": b'<?xml version="1.0" encoding="klingon"?>' + envelope("<a/>"),
    "an encoding that it has not": b'<?xml version="1.0" encoding="utf-16"?>' + envelope("<a/>"),
    "bytes that are no text": envelope("<a/>").replace(b"<a/>", b"<a>\xff\xfe\xc3\x28</a>"),
    "deep elements": envelope("<x>" * 5000 + "</x>" * 5000),
    "deep unclosed elements": b"<x>" * 100_000,
    "many methods": envelope("<CurrentTime/>" * 1000),
    "an unknown prefix": b"<e:Envelope><e:Body/></e:Envelope>",
    "an object without a type": envelope("<CurrentTime><_this>ServiceInstance</_this></CurrentTime>"),
    "an object of no kind": envelope('<CurrentTime><_this type="xsd:int">1</_this></CurrentTime>'),
}


@pytest.mark.parametrize("body", NO_REQUESTS.values(), ids=NO_REQUESTS)
def test_what_is_no_request_is_an_invalid_request(body: bytes) -> None:
    vcenter = vcenter_of_its_own()
    answer = vcenter.post(body)
    assert_protocol(vcenter, answer)
    assert answer.fault in ("InvalidRequest", "MethodNotFound")
    assert ("document type is not allowed" in answer.message) == (b"DOCTYPE" in body)


@settings(max_examples=40)
@given(st.binary(max_size=300), st.sampled_from([b"", b"<", b"<?xml", b"<Envelope><Body>", b"\xef\xbb\xbf"]))
def test_bytes_at_random_are_an_invalid_request(body: bytes, beginning: bytes) -> None:
    vcenter = vcenter_of_its_own()
    answer = vcenter.post(beginning + body)
    assert_protocol(vcenter, answer)
    assert answer.fault in ("InvalidRequest", "MethodNotFound")


@settings(max_examples=40)
@given(st.text(min_size=1, max_size=40))
def test_a_method_that_nobody_knows_is_a_method_not_found(name: str) -> None:
    vcenter = vcenter_of_its_own()
    answer = vcenter.post(envelope(f"<{name}/>"))
    assert_protocol(vcenter, answer)
    assert answer.fault in ("InvalidRequest", "MethodNotFound")
    assert vcenter.post(envelope("<MakeCoffee_Task/>")).fault == "MethodNotFound"


@settings(max_examples=40)
@given(st.text(max_size=60), st.text(max_size=60))
def test_whoever_has_no_session_is_told_so(cookie: str, soapaction: str) -> None:
    vcenter = vcenter_of_its_own()
    headers = {"cookie": f"vmware_soap_session={cookie}", "soapaction": soapaction}
    answer = vcenter.post(call("CurrentTime", ("ServiceInstance", "ServiceInstance")), headers)
    assert_protocol(vcenter, answer)
    assert answer.fault == "NotAuthenticated"


@pytest.mark.parametrize(
    "path", [*PATHS, "summary.config.numCpu", "config.name[0]", "name[a]", "guest.net[0]", "recentTask[x].y"]
)
def test_an_odd_path_is_an_invalid_property_or_leads_nowhere(path: str) -> None:
    """Asked for alone, in a filter, and as a way to further objects."""
    vcenter = vcenter_of_its_own()
    vm = '<obj type="VirtualMachine">vm-1</obj>'
    way = f"{DEEP}<type>VirtualMachine</type><path>{escape(path)}</path></selectSet>"
    wanted = f"<propSet><type>VirtualMachine</type><pathSet>{escape(path)}</pathSet></propSet>"
    named = "<propSet><type>VirtualMachine</type><pathSet>name</pathSet></propSet>"
    collector = ("PropertyCollector", "propertyCollector")
    for body in (
        call("Fetch", ("VirtualMachine", "vm-1"), f"<prop>{escape(path)}</prop>"),
        call("RetrieveProperties", collector, f"<specSet>{wanted}<objectSet>{vm}</objectSet></specSet>"),
        call("RetrieveProperties", collector, f"<specSet>{named}<objectSet>{vm}{way}</objectSet></specSet>"),
    ):
        answer = vcenter.post(body)
        assert_protocol(vcenter, answer)
        assert answer.fault in ("", "InvalidProperty")


# Too much


def too_large(size: int) -> bytes:
    return call("CurrentTime", ("ServiceInstance", "ServiceInstance")) + b" " * size


@pytest.mark.parametrize("announced", [True, False])
def test_a_body_that_is_too_large_is_refused_and_its_connection_ends(announced: bool) -> None:
    vcenter = vcenter_of_its_own()
    body = too_large(MAX_BYTES)
    headers = {"content-length": str(len(body))} if announced else {}
    answer = vcenter.post(body, headers, pieces=9)
    assert_protocol(vcenter, answer)
    assert (answer.fault, answer.headers["connection"]) == ("InvalidRequest", "close")


def test_a_large_body_is_read_whole_in_pieces() -> None:
    vcenter = vcenter_of_its_own()
    answer = vcenter.post(too_large(MAX_BYTES // 2), pieces=9)
    assert (answer.status, vcenter.troubles) == (200, [])


LONG = {
    "a long text": "x" * (MAX_BYTES - 2000),
    "many lines": "\n" * (MAX_BYTES - 2000),
    "many entities": "&amp;" * (MAX_BYTES // 6),
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_a_long_argument_is_read_in_no_time(text: str) -> None:
    vcenter = vcenter_of_its_own()
    answer = vcenter.post(
        call("FindByInventoryPath", ("SearchIndex", "SearchIndex"), f"<inventoryPath>{text}</inventoryPath>")
    )
    assert_protocol(vcenter, answer)


@pytest.mark.parametrize("depth", [10, 100, 10_000])
def test_traversals_within_traversals_have_an_end(depth: int) -> None:
    inside = "<type>Folder</type><path>childEntity</path>"
    nested = f"{DEEP}{inside}" * depth + "</selectSet>" * depth
    start = f'<objectSet><obj type="Folder">group-d1</obj>{nested}</objectSet>'
    spec = f"<specSet><propSet><type>Folder</type><pathSet>name</pathSet></propSet>{start}</specSet>"
    vcenter = vcenter_of_its_own()
    answer = vcenter.post(call("RetrieveProperties", ("PropertyCollector", "propertyCollector"), spec))
    assert_protocol(vcenter, answer)
    assert answer.fault == ("" if depth == 10 else "InvalidRequest")


@pytest.mark.parametrize(("count", "fault"), [(200, ""), (2000, "InvalidArgument")])
def test_traversals_that_name_each_other_have_an_end(count: int, fault: str) -> None:
    """To and fro between a folder and what is in it, as long a way as there are names."""
    ways = [("Folder", "childEntity"), ("ManagedEntity", "parent")]
    named = "".join(
        f"{DEEP}<name>n{n}</name><type>{ways[n % 2][0]}</type><path>{ways[n % 2][1]}</path>"
        f"<selectSet><name>n{(n + 1) % count}</name></selectSet></selectSet>"
        for n in range(count)
    )
    start = f'<objectSet><obj type="Folder">group-d1</obj>{named}</objectSet>'
    spec = f"<specSet><propSet><type>Folder</type><pathSet>name</pathSet></propSet>{start}</specSet>"
    vcenter = vcenter_of_its_own()
    answer = vcenter.post(call("RetrieveProperties", ("PropertyCollector", "propertyCollector"), spec))
    assert_protocol(vcenter, answer)
    assert answer.fault == fault
