"""pyVmomi's serialiser, used by a server. What a server sends differs from what a client sends in a few details."""

from __future__ import annotations

import copy
from functools import lru_cache
from io import StringIO
from typing import Any
from xml.sax.saxutils import escape

from vgpuctl.sim.vcenter.wire.metadata import NAMESPACE, wire_name
from vgpuctl.sim.vcenter.wire.vmomi import adapter, support

_PREFIXES = {**adapter.SOAP_NSMAP, NAMESPACE: ""}
_START = adapter.XML_HEADER + "\n" + adapter.SOAP_START
_END = adapter.SOAP_END


class Xml(str):
    """Text that is XML already."""

    __slots__ = ()


class _Serialiser(adapter.SoapSerializer):  # type: ignore[misc]
    def __init__(self, writer: StringIO, version: Any) -> None:
        super().__init__(writer, version, _PREFIXES)
        self.outermostAttrs = ""  # a client's request carries versionId, a reply does not

    def _Serialize(self, val: Any, info: Any, defNS: str) -> None:  # noqa: N803 - overrides pyVmomi's
        if isinstance(val, list) and not val and info.type is not object:
            return  # pyVmomi refuses empty arrays in required fields, vCenter sends them
        if isinstance(val, support.ManagedObject) and info.type is object:
            self.writer.write(
                _reference_in_any(info.name, val)
            )  # govc prints nothing for pyVmomi's name of this type (seen with 0.56)
            return
        super()._Serialize(val, info, defNS)


@lru_cache(maxsize=1024)
def _opening(kind: Any, version: Any) -> str:
    """Return the opening tag of a `<val>` for a type of string."""
    return str(serialise("val", kind("?"), object, version)).removesuffix("?</val>")


def leaf(value: Any, version: Any) -> Xml:
    """Return a `<val>`. Strings, numbers and references, the most frequent values, skip the generic serialiser."""
    if isinstance(value, support.ManagedObject):
        return Xml(_reference_in_any("val", value))
    if isinstance(value, str):
        return Xml(f"{_opening(type(value), version)}{escape(str(value))}</val>")
    return _number(value, version) if isinstance(value, int) else serialise("val", value, object, version)


@lru_cache(maxsize=4096, typed=True)
def _number(value: int, version: Any) -> Xml:
    return serialise("val", value, object, version)


def serialise(name: str, value: Any, declared: Any, version: Any) -> Xml:
    writer = StringIO()
    info = support.Object(name=name, type=declared, version=version, flags=0)
    _Serialiser(writer, version).Serialize(value, info)
    return Xml(writer.getvalue())


def element(name: str, *content: str) -> Xml:
    return Xml(f"<{name}>{''.join(content)}</{name}>")


def text(name: str, content: str) -> Xml:
    return Xml(f"<{name}>{escape(content)}</{name}>")


def reference(name: str, target: Any) -> Xml:
    return Xml(f'<{name} type="{wire_name(type(target))}">{escape(target._moId)}</{name}>')


def response(method: str, content: str) -> bytes:
    body = f'<{method}Response xmlns="{NAMESPACE}">{content}</{method}Response>'
    return f"{_START}{body}{_END}".encode()


def fault_response(fault: Any, version: Any) -> bytes:
    """Return the envelope of a fault. The fault's message is in the envelope, not in the fault."""
    # Measured with pyVmomi: the element is named <Type>Fault, in the namespace urn:vim25.
    kind = wire_name(type(fault))
    silent = copy.copy(fault)
    silent.msg = None
    writer = StringIO()
    info = support.Object(name=f"{kind}Fault", type=object, version=version, flags=0)
    _Serialiser(writer, version)._SerializeDataObject(silent, info, f' xmlns="{NAMESPACE}"', NAMESPACE)
    body = (
        "<soapenv:Fault><faultcode>ServerFaultCode</faultcode>"
        f"{text('faultstring', fault.msg or '')}{element('detail', writer.getvalue())}</soapenv:Fault>"
    )
    return f"{_START}{body}{_END}".encode()


def _reference_in_any(name: str, target: Any) -> str:
    kind = wire_name(type(target))
    # Measured: govc 0.56 needs this type inside an Any; pyVmomi accepts both.
    return f'<{name} type="{kind}" xsi:type="ManagedObjectReference">{escape(target._moId)}</{name}>'
