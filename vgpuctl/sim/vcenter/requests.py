"""One SOAP request read by pyVmomi's deserialiser: the method, its object and its arguments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from xml.parsers.expat import ParserCreate

from vgpuctl.sim.vcenter.metadata import NAMESPACE
from vgpuctl.sim.vcenter.vmomi import adapter, support

_THIS = "_this"
_STRING = support.Object(name="prop", type=str, flags=0, privId=None)
FETCH = support.Object(wsdlName="Fetch", type=support.ManagedObject, params=(_STRING,), result=object, privId=None)
"""What `vm.name` sends. No metadata mention it."""


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    info: Any
    this: Any
    arguments: tuple[Any, ...]


class BadRequest(ValueError):  # noqa: N818
    """Not XML, not SOAP, or not what the method's metadata say."""


class UnknownMethod(BadRequest):
    """No such method in the metadata."""


def parse(body: bytes) -> Request:
    parser = ParserCreate(namespace_separator=adapter.NS_SEP)
    reader = _Reader(parser)
    try:
        parser.Parse(body, True)
        return reader.request()
    except BadRequest:
        raise
    except Exception as error:  # whatever a client sends can break pyVmomi's deserialiser in any way
        raise BadRequest(str(error)) from error


@dataclass
class _Reader(adapter.ExpatDeserializerNSHandlers):  # type: ignore[misc]
    """Walks Envelope, Body and method itself; each argument is handed to pyVmomi's deserialiser."""

    parser: Any
    nsMap: dict[Any, list[str]] = field(default_factory=dict)  # noqa: N815 - pyVmomi's name
    path: list[str] = field(default_factory=list)
    info: Any = None
    found: dict[str, list[Any]] = field(default_factory=dict)
    pending: tuple[str, Any] | None = None

    def __post_init__(self) -> None:
        adapter.SetHandlers(self.parser, adapter.GetHandlers(self))

    def StartElementHandler(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(adapter.NS_SEP)[2]
        self._collect()
        in_body = len(self.path) > 1 and self.path[1] == "Body"
        if in_body and len(self.path) == 3:
            self._hand_over(name, tag, attributes)
            return
        if in_body and len(self.path) == 2:
            self.info = method_info(name)
        self.path.append(name)

    def EndElementHandler(self, tag: str) -> None:
        self._collect()
        self.path.pop()

    def CharacterDataHandler(self, data: str) -> None:
        """Nothing but white space stands between the elements that we walk ourselves."""

    def request(self) -> Request:
        if self.info is None or _THIS not in self.found:
            raise BadRequest("no method, or no object to call it on")
        arguments = tuple(self._argument(parameter) for parameter in self.info.params)
        return Request(self.info.wsdlName, self.info, self.found[_THIS][0], arguments)

    def _hand_over(self, name: str, tag: str, attributes: dict[str, str]) -> None:
        declared = support.ManagedObject if name == _THIS else self._parameter(name).type
        item = declared.Item if issubclass(declared, list) else declared
        deserialiser = adapter.SoapDeserializer()
        deserialiser.Deserialize(self.parser, item, False, self.nsMap)
        self.pending = (name, deserialiser)
        deserialiser.StartElementHandler(tag, attributes)

    def _collect(self) -> None:
        if self.pending:
            name, deserialiser = self.pending
            self.found.setdefault(name, []).append(deserialiser.GetResult())
            self.pending = None

    def _parameter(self, name: str) -> Any:
        for parameter in self.info.params:
            if parameter.name == name:
                return parameter
        raise BadRequest(f"{self.info.wsdlName} has no argument {name}")

    def _argument(self, parameter: Any) -> Any:
        values = self.found.get(parameter.name, [])
        if issubclass(parameter.type, list):
            return values
        if not values and not parameter.flags & support.F_OPTIONAL:
            raise BadRequest(f"{self.info.wsdlName} needs the argument {parameter.name}")
        return values[-1] if values else None


def method_info(name: str) -> Any:
    if name == FETCH.wsdlName:
        return FETCH
    try:
        return support.GetWsdlMethod(NAMESPACE, name).info
    except KeyError:
        raise UnknownMethod(name) from None
