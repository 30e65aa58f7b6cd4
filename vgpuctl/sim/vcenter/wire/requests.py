"""Parses one SOAP request with pyVmomi's deserialiser: the method, its object and its arguments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from xml.parsers.expat import ExpatError, ParserCreate

from vgpuctl.sim.vcenter.wire.argument_types import WrongType, check
from vgpuctl.sim.vcenter.wire.metadata import NAMESPACE
from vgpuctl.sim.vcenter.wire.vmomi import adapter, support

_THIS = "_this"
_MAX_DEPTH = 64
_BUFFER = 1 << 18
"""With a smaller buffer expat calls back for each line of a long text, and pyVmomi copies all text before
it each time.
"""
_STRING = support.Object(name="prop", type=str, flags=0, privId=None)
FETCH = support.Object(wsdlName="Fetch", type=support.ManagedObject, params=(_STRING,), result=object, privId=None)
"""The method that pyVmomi sends for `vm.name`. The metadata do not contain it."""


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    info: Any
    this: Any
    arguments: tuple[Any, ...]


class BadRequest(ValueError):  # noqa: N818
    """Not XML, not SOAP, or not what the method's metadata declare."""


class UnknownMethod(BadRequest):
    """A method that is not in the metadata."""


def parse(body: bytes) -> Request:
    parser = ParserCreate(namespace_separator=adapter.NS_SEP)
    parser.buffer_text, parser.buffer_size = True, _BUFFER
    parser.StartDoctypeDeclHandler = _refuse_document_type
    reader = _Reader(parser)
    try:
        parser.Parse(body, True)
        return reader.request()
    except BadRequest:
        raise
    except (ExpatError, WrongType) as error:
        raise BadRequest(str(error)) from error
    except Exception as error:  # pyVmomi's deserialiser may raise anything for a malformed request
        raise BadRequest(reader.complaint()) from error


@dataclass
class _Reader(adapter.ExpatDeserializerNSHandlers):  # type: ignore[misc]
    """Walks Envelope, Body and method itself, and passes each argument to pyVmomi's deserialiser."""

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
            self._begin(name)
        if len(self.path) >= _MAX_DEPTH:
            raise BadRequest("it is nested too deeply")
        self.path.append(name)

    def EndElementHandler(self, tag: str) -> None:
        self._collect()
        self.path.pop()

    def CharacterDataHandler(self, data: str) -> None:
        """Ignore text: between these elements there is only white space."""

    def request(self) -> Request:
        this = self.found.get(_THIS, [None])[0]
        if self.info is None or not isinstance(this, support.ManagedObject):
            raise BadRequest("no method, or no object to call it on")
        arguments = tuple(self._argument(parameter) for parameter in self.info.params)
        return Request(self.info.wsdlName, self.info, this, arguments)

    def complaint(self) -> str:
        return f"the argument {self.pending[0]} cannot be read" if self.pending else "it cannot be read"

    def _begin(self, method: str) -> None:
        if self.info is not None:
            raise BadRequest("more than one method")
        self.info = method_info(method)

    def _hand_over(self, name: str, tag: str, attributes: dict[str, str]) -> None:
        # A method may be called on an object of any type. Whether the type has this method is decided later.
        declared = support.ManagedObject if name == _THIS else self._parameter(name).type
        item = declared.Item if issubclass(declared, list) else declared
        deserialiser = _ArgumentDeserialiser()
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
        is_list = issubclass(parameter.type, list)
        value = values if is_list else next(reversed(values), None)
        check(parameter.name, value, parameter.type, parameter.flags)
        return value


class _ArgumentDeserialiser(adapter.SoapDeserializer):  # type: ignore[misc]
    """Bounds the depth, because pyVmomi walks nested data objects recursively."""

    def StartElementHandler(self, tag: str, attributes: dict[str, str]) -> None:
        if len(self.stack) >= _MAX_DEPTH:
            raise BadRequest("it is nested too deeply")
        super().StartElementHandler(tag, attributes)


def _refuse_document_type(*_: object) -> None:
    """Refuse a document type: its entities could expand without end."""
    raise BadRequest("a document type is not allowed")


def method_info(name: str) -> Any:
    if name == FETCH.wsdlName:
        # Measured: pyVmomi's metadata lack this method, although its own clients send it.
        return FETCH
    try:
        return support.GetWsdlMethod(NAMESPACE, name).info
    except KeyError:
        raise UnknownMethod(name) from None
