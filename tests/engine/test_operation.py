"""One operation under the acting Lease: what it looks at first, and what can never stop it."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given

from tests.support.fleets import CATALOGUE, day_and_night, fleets_and_wishes, night_wish, timetable
from tests.support.ports import Ports
from vgpuctl.engine.listening import MutedOnFailure
from vgpuctl.engine.ports import Report
from vgpuctl.engine.runner import Progress
from vgpuctl.model.conduct import Conduct, OnStuck
from vgpuctl.model.errors import ExitCode, PassingError, StoppedError, UnreachableError
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.journal import INTERRUPTED, Entry
from vgpuctl.model.ledger import Ledger
from vgpuctl.model.requests import DeletePod, Evict, PatchNode, PowerOnVm, SuspendVm
from vgpuctl.model.wish import Wish
from vgpuctl.operations import Operation, exit_code, look_ahead, requests_ahead
from vgpuctl.planning.steps import Cordon, Label, MarkAsleep, Uncordon
from vgpuctl.planning.wishes import former_wish, switch_wish

DAY = tuple(f"worker-{n}" for n in range(1, 5))


def night(fleet: Fleet) -> Wish:
    return switch_wish(fleet, CATALOGUE, timetable(day=DAY, night=("worker-5",)), "night")


@dataclass
class Ears:
    """Hears everything, or fails at the first thing that it is shown."""

    failure: BaseException | None = None
    heard: list[str] = field(default_factory=list)

    def say(self, text: str) -> None:
        self._hear(text)

    def progress(self, progress: Progress) -> None:
        self._hear("a look")

    def _hear(self, what: str) -> None:
        self.heard.append(what)
        if self.failure is not None:
            raise self.failure


class Operated(Ports):
    """Carries out one night, and interrupts it at the fourth look."""

    def __init__(self, listener: Ears | None = None) -> None:
        super().__init__(day_and_night()[0], held_at=[])
        self.order: list[str] = []
        self.ears = listener or Ears()
        self.operation = Operation(world=self.world(), listener=self.ears)

    def carry_out(self) -> Report:
        return self.operation.carry_out(night, former_wish)

    def acquire(self, say: Callable[[str], None], stop: Callable[[], bool]) -> None:
        self.order.append("the Lease")

    def refresh(self) -> None:
        self.order.append("both servers once more")

    def fleet(self) -> Fleet:
        self.order.append("the picture")
        if self.order.count("the picture") == 4:
            self.operation.interrupt()
        return self.some

    def read(self) -> Ledger:
        self.order.append("the ledger")
        return Ledger()


def test_the_picture_that_decides_is_newer_than_the_lease() -> None:
    ports = Operated()
    ports.carry_out()
    assert ports.order[:4] == ["the Lease", "both servers once more", "the picture", "the ledger"]


def test_a_picture_that_is_stale_after_the_lease_begins_nothing() -> None:
    ports = Operated()
    ports.some = replace(ports.some, stale=("Kubernetes",))
    with pytest.raises(PassingError, match=r"Kubernetes cannot be heard\. Nothing was changed\."):
        ports.carry_out()
    assert (ports.sent, ports.written, ports.announced, ports.released) == ([], [], [], 1)


def test_an_account_that_lacks_a_right_changes_nothing() -> None:
    ports = Operated()
    ports.forbidden = "This account may not create pods/eviction. Nothing was changed."
    with pytest.raises(UnreachableError, match="may not create pods/eviction") as error:
        ports.carry_out()
    assert error.value.exit_code is ExitCode.UNREACHABLE
    assert (ports.sent, ports.written, ports.announced, ports.entries) == ([], [], [], [])
    assert ports.released == 1


def test_the_rights_that_a_plan_needs_are_asked_for_before_it_begins() -> None:
    ports = Operated()
    ports.carry_out()
    assert {type(request) for request in ports.sent} == {PatchNode}
    assert {type(request) for request in ports.checked} == {PatchNode, Evict, SuspendVm, PowerOnVm}


@pytest.mark.parametrize("on_stuck", OnStuck)
def test_only_a_timetable_that_forces_needs_the_right_to_delete_pods(on_stuck: OnStuck) -> None:
    by_day, _ = day_and_night()
    preview = look_ahead(by_day, night_wish(by_day, conduct=Conduct(on_stuck=on_stuck)))
    ahead = {type(request) for request in requests_ahead(preview, "")}
    always = {PatchNode, Evict, SuspendVm, PowerOnVm}
    assert ahead == always | ({DeletePod} if on_stuck is OnStuck.FORCE else set())


@given(fleets_and_wishes())
def test_what_a_plan_needs_can_be_told_of_every_fleet(case: tuple[Fleet, Wish]) -> None:
    preview = look_ahead(*case)
    needed = {type(request) for request in requests_ahead(preview, "")}
    assert (PatchNode in needed) == any(
        isinstance(step, Cordon | Label | MarkAsleep | Uncordon) for step in preview.plan
    )


def test_whoever_stops_it_as_the_lease_is_taken_changes_nothing() -> None:
    ports = Operated()
    ports.refresh = ports.operation.interrupt  # type: ignore[method-assign]
    with pytest.raises(StoppedError) as error:
        ports.carry_out()
    assert error.value.exit_code is ExitCode.INTERRUPTED
    assert (ports.sent, ports.written, ports.announced, ports.entries) == ([], [], [], [])
    assert ports.released == 1


FAILURES = [
    BrokenPipeError(errno.EPIPE, "Broken pipe"),
    OSError(errno.ENOSPC, "No space left on device"),
    OSError(errno.EIO, "Input/output error"),
    UnicodeEncodeError("ascii", "✓", 0, 1, "ordinal not in range(128)"),
    ValueError("a fault of ours"),
]


@pytest.mark.parametrize("failure", FAILURES, ids=repr)
def test_output_that_fails_does_not_end_the_work(failure: Exception) -> None:
    ports = Operated(Ears(failure))
    report = ports.carry_out()
    assert len(ports.sent) >= 4, "the cordons"
    assert report.interrupted
    assert ports.released == 1
    assert ports.entries[-1].outcome == INTERRUPTED, "the journal's last word was written"
    assert len(ports.ears.heard) == 1, "it is muted from then on"


def test_why_nothing_more_is_shown_is_said_once_and_not_to_a_reader_that_has_seen_enough(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for failure in FAILURES[:2]:
        listener = MutedOnFailure(Ears(failure))
        listener.say("one")
        listener.say("two")
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert "OSError" in line
    assert "test_operation.py:" in line


def test_a_fault_of_the_recorder_ends_the_entry_and_not_the_work() -> None:
    ports = Operated()

    def keep(entry: Entry) -> None:
        raise KeyError("a fault of ours")

    ports.keep = keep  # type: ignore[method-assign]
    assert ports.carry_out().interrupted
    assert len(ports.sent) >= 4
    (said,) = [text for text in ports.ears.heard if text != "a look"]
    assert said.startswith("The history will not show this switch: KeyError")
    assert "test_operation.py:" in said


def test_a_switch_that_could_not_hear_a_server_ends_as_unreachable() -> None:
    assert exit_code(Report(wish="night", unheard=("vCenter",)), refused=False) is ExitCode.UNREACHABLE
