"""The daemon's HTTP server with what it shows. It answers probes before the first login, and the rest after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from prometheus_client import CollectorRegistry

from vgpuctl.daemon.hooks import Hooks
from vgpuctl.daemon.schedule_loop import ScheduleLoop
from vgpuctl.daemon.serving.app import Served, make_app
from vgpuctl.daemon.serving.counters import Counters
from vgpuctl.daemon.serving.health import Heard, Leading, Pulse, Readiness
from vgpuctl.daemon.serving.http_server import HttpServer
from vgpuctl.daemon.serving.metrics import Metrics, OwnState
from vgpuctl.daemon.serving.status_documents import Pictured, StatusDocuments
from vgpuctl.daemon.watched_files import WatchedFiles
from vgpuctl.settings.listening import Listening
from vgpuctl.settings.passwords import from_file


class Connection(Heard, Pictured, Protocol):
    """What is shown of the connection."""


class DaemonServer:
    """Listens from its making. UsageError if it cannot, or if its files cannot be read."""

    def __init__(self, listening: Listening, watched: WatchedFiles, say: Callable[[str], None]) -> None:
        registry = CollectorRegistry()
        self._loop: ScheduleLoop | None = None
        self._pulse, self._readiness, self._counters = Pulse(), Readiness(), Counters(registry)
        self._documents = StatusDocuments(lambda: datetime.now().astimezone())
        own = OwnState(
            role=lambda: self._readiness.role,
            ready=lambda: bool(self._readiness.ready()["ready"]),
            last_round_s=lambda: self._pulse.age_s,
            files_good_at=lambda: watched.good_at,
            files_broken=lambda: watched.broken,
            forecasts_s=self._forecasts_s,
        )
        served = Served(
            alive=self._pulse.alive,
            ready=self._readiness.ready,
            status=self._documents.current,
            metrics=Metrics(self._documents.current, own, registry).exposition,
        )
        token_file = listening.token
        read_token = (lambda: from_file(token_file, "token")) if token_file else None
        if read_token:
            read_token()
        app = make_app(served, read_token, local_only=listening.on_loopback)
        self._server = HttpServer(listening, app, say)
        say(f"Listening on {replace(listening, port=self._server.port).url}.")

    @property
    def port(self) -> int:
        return self._server.port

    def counted(self, hooks: Hooks) -> Hooks:
        """Return the loop's hooks, with switches and their requests counted."""
        return replace(hooks, ended=self._counters.ended, counted=self._counters.counted)

    def start(self) -> None:
        self._server.start()

    def connect(self, connection: Connection, loop: ScheduleLoop, leadership: Leading) -> None:
        """Show this picture from now on, by the files that the loop follows."""
        self._loop = loop
        self._documents.connect(connection, lambda: loop.files)
        self._readiness.connect(connection, leadership)

    def counting(self, keep: Callable[[], None]) -> Callable[[], None]:
        """Return the loop's round, which shows that the loop is alive."""

        def kept() -> None:
            self._pulse.beat()
            try:
                keep()
            finally:
                self._pulse.beat()

        return kept

    def stop(self) -> None:
        self._server.stop()

    def _forecasts_s(self) -> dict[str, float]:
        if self._loop is None:
            return {}
        known = {name: self._loop.takes(name).total_seconds() for name in self._loop.files.timetables}
        return {name: forecast_s for name, forecast_s in known.items() if forecast_s}
