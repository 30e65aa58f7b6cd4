"""pyVmomi's connection to vCenter, within bounds. Here a reply that it cannot read becomes one of our errors."""

from __future__ import annotations

import re
from http.client import HTTPException
from threading import local
from typing import Any

from pyVmomi import vmodl
from pyVmomi.SoapAdapter import SoapStubAdapter

from vgpuctl.model.errors import VgpuctlError
from vgpuctl.vsphere.faults import garbled
from vgpuctl.wire import replies

LONG_POLL = "WaitForUpdatesEx"
#: SOAP: the first element of the body names the method that is answered, or is a fault.
_ANSWERED = re.compile(rb"[:<]Body[^>]*>\s*<(?:[\w.-]+:)?(\w+)")
#: How much of a reply is kept to find it. It comes after the envelope's namespaces.
_BEGINNING = 4096


class _OwnError(Exception):
    """The request could not be written: our own mistake, not vCenter's."""


class _Response(replies.BoundedResponse):
    """A response that keeps its beginning."""

    beginning = b""

    def read(self, amt: int | None = None) -> bytes:
        data = super().read(amt)
        if len(self.beginning) < _BEGINNING:
            self.beginning += data[:_BEGINNING]
        return data


class _Connection(replies.BoundedHTTPSConnection):
    """A connection that keeps its last response."""

    response_class = _Response
    response: Any = None

    def getresponse(self) -> Any:
        self.response = super().getresponse()
        return self.response


class Stub(SoapStubAdapter):
    """A connection pool for all threads. Packed replies are unpacked below pyVmomi, where their size is counted."""

    def __init__(self, server: str, bounds: replies.Bounds, **more: Any) -> None:
        # pyVmomi itself would also offer deflate, which is not unpacked here.
        packed = {"Accept-Encoding": "gzip"}
        super().__init__(acceptCompressedResponses=False, customHeaders=packed, **more)  # type: ignore[no-untyped-call]
        self.scheme: Any = _Connection
        self._server, self._bounds, self._thread = server, bounds, local()

    def InvokeMethod(self, mo: Any, info: Any, args: Any, outerStub: Any = None) -> Any:  # noqa: N803
        wait_s = float(args[1].maxWaitSeconds or 0) if info.wsdlName == LONG_POLL and args[1] else 0.0
        replies.begin(f"vCenter {self._server}", self._bounds, self._bounds.call_s, wait_s=wait_s)
        self._thread.connection = None
        try:
            result = super().InvokeMethod(mo, info, args, outerStub)  # type: ignore[no-untyped-call]
            self._check_answers(info.wsdlName)
        except (vmodl.MethodFault, OSError, HTTPException):
            raise
        except _OwnError as error:
            raise error.args[0] from None
        # Decision 0018: what pyVmomi cannot read becomes an error here, where the reply is read.
        # Further out, a mistake of ours would pass for a vCenter that does not answer.
        except Exception as error:
            if self._thread.connection is not None:
                # A reply that was read in part must not be taken for the answer to the next request.
                self._thread.connection.close()
            if isinstance(error, VgpuctlError):
                raise
            raise garbled(self._server, type(error).__name__) from error
        return result

    def _check_answers(self, method: str) -> None:
        """Raise if the reply answers another method: something in between mixed replies up.

        pyVmomi does not look. An empty answer to another call would pass for `nothing has changed`.
        """
        found = _ANSWERED.search(self._thread.connection.response.beginning)
        if found is None or found[1] != f"{method}Response".encode():
            raise garbled(self._server, f"its reply is not one to {method}")

    def SerializeRequest(self, mo: Any, info: Any, args: Any) -> Any:
        try:
            return super().SerializeRequest(mo, info, args)  # type: ignore[no-untyped-call]
        except vmodl.MethodFault:
            raise
        except Exception as error:
            raise _OwnError(error) from error

    def GetConnection(self) -> Any:
        self._thread.connection = connection = super().GetConnection()  # type: ignore[no-untyped-call]
        if connection.sock is not None:
            # An earlier call may have left a shorter timeout.
            connection.sock.settimeout(self._bounds.call_s)
        return connection
