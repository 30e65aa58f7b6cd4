"""vCenter's stream after replies that no vCenter should send: not heard, and begun anew within the same session."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from xml.parsers.expat import ExpatError

import pytest
from pyVmomi import vim, vmodl

from vgpuctl.model.errors import PassingError
from vgpuctl.vsphere.property_filters import ObservationScope
from vgpuctl.vsphere.stream import MOST_REFETCHES, VcenterStream
from vgpuctl.wire import retries

WITHIN_S = 10.0
NOTHING = object()
FILTER = vmodl.query.PropertyCollector.Filter("filter-1")


class Vcenter:
    """A session whose property collectors say what is next; with nothing left to say, that nothing has changed."""

    version = "vim.version.version9"

    def __init__(self, *said: Any) -> None:
        self.said, self.made, self.destroyed, self.opened = list(said), 0, 0, 0
        self.settings = SimpleNamespace(server="vc:443")
        self.content = self.login()

    def login(self) -> Any:
        manager = SimpleNamespace(CreateContainerView=lambda *_: self._thing(vim.view.ContainerView))
        collector = SimpleNamespace(CreatePropertyCollector=self._collector)
        return SimpleNamespace(rootFolder=vim.Folder("root"), viewManager=manager, propertyCollector=collector)

    def open(self) -> None:
        self.opened += 1

    def _collector(self) -> Any:
        return SimpleNamespace(
            CreateFilter=lambda *_: FILTER, WaitForUpdatesEx=self._fetch_updates, Destroy=self._destroy
        )

    def _thing(self, kind: Any) -> Any:
        self.made += 1
        stub = SimpleNamespace(InvokeMethod=lambda *_: self._destroy(), version=self.version)
        return kind(f"thing-{self.made}", stub)

    def _destroy(self) -> None:
        self.destroyed += 1

    def _fetch_updates(self, version: str, _: Any) -> Any:
        said = self.said.pop(0) if self.said else None
        if isinstance(said, Exception):
            raise said
        if said is None and version:
            time.sleep(0.002)
        if said is NOTHING:
            return None
        return said or (None if version else update())


def update(*changes: Any, version: str = "1", of: Any = FILTER) -> Any:
    return SimpleNamespace(version=version, truncated=False, filterSet=[SimpleNamespace(filter=of, objectSet=changes)])


def stream_of(vcenter: Vcenter, note: Callable[[], None] = lambda: None) -> VcenterStream:
    return VcenterStream(vcenter, lambda vms: vms, ObservationScope(), note)  # type: ignore[arg-type]


def until(done: Callable[[], Any]) -> None:
    ends_s = time.monotonic() + WITHIN_S
    while not done():
        assert time.monotonic() < ends_s
        time.sleep(0.002)


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (PassingError("vCenter vc:443 answers, but not as a vCenter does (ExpatError)."), "answers, but not as"),
        (ExpatError("unclosed token"), "ExpatError: unclosed token"),
        (SimpleNamespace(version="2", truncated=False, filterSet=None), "TypeError"),
        (update(version="1"), "its report goes back in time"),
        (update(version="2", of=vmodl.query.PropertyCollector.Filter("filter-0")), "one to another filter"),
        (ConnectionResetError(104, "Connection reset by peer"), "does not answer: Connection reset by peer"),
        (vim.fault.NotAuthenticated(), "the session with vCenter vc:443 has ended"),
    ],
)
def test_it_is_not_heard_until_it_was_filled_anew(end: Any, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`heard` stayed true after most of these, and all that was shown was old."""
    monkeypatch.setattr(retries, "FIRST_PAUSE_S", 0.001)
    notes: list[tuple[bool, str]] = []
    vcenter = Vcenter(update(), None, end)
    stream = stream_of(vcenter, lambda: notes.append((stream.heard, stream.silence)))
    stream.fill()
    stream.follow()
    until(lambda: vcenter.opened and stream.heard)
    stream.close()
    ((heard, silence), *_) = [note for note in notes if note[1]]
    assert not heard
    assert why in silence


def test_what_an_earlier_fill_made_is_given_back_in_the_same_session_alone() -> None:
    """vCenter keeps collectors and views for as long as the session lasts."""
    vcenter = Vcenter()
    stream = stream_of(vcenter)
    stream.fill()
    assert vcenter.destroyed == 0
    stream.fill()
    assert vcenter.destroyed == 2
    vcenter.content = vcenter.login()
    stream.fill()
    assert vcenter.destroyed == 2


def test_changes_that_never_fit_are_given_up() -> None:
    """Everything was asked for once more, for ever."""
    lost = SimpleNamespace(name="config.hardware.device[1].key", op="assign", val=1)
    odd = SimpleNamespace(obj=vim.VirtualMachine("vm-1"), kind="modify", changeSet=[lost])
    vcenter = Vcenter(*(update(odd, version=str(number)) for number in range(1, 51)))
    with pytest.raises(PassingError, match="do not fit its earlier reports"):
        stream_of(vcenter).fill()
    assert len(vcenter.said) == 50 - MOST_REFETCHES - 1


def test_a_server_that_does_not_count_its_reports_is_heard() -> None:
    """vcsim's versions are `-` and then always `P`."""
    vcenter = Vcenter(update(version="-"), update(version="P"), update(version="P"))
    stream = stream_of(vcenter)
    stream.fill()
    for _ in range(2):
        stream.refresh()
    assert vcenter.said == []


def test_nothing_is_no_answer_to_the_question_for_everything() -> None:
    """A repeated reply without news passed for an empty vCenter, and all workers were missing."""
    vcenter = Vcenter()
    vcenter.said = [NOTHING]
    stream = stream_of(vcenter)
    with pytest.raises(PassingError, match="it reports nothing, and was asked for everything"):
        stream.fill()
    assert not stream.heard


def test_a_picture_of_a_former_scope_is_not_heard_and_is_fetched_again_in_the_same_session() -> None:
    """The files may change while the stream is just beginning anew."""
    vcenter = Vcenter()
    stream = stream_of(vcenter)
    asked: list[list[str]] = []

    def view(_: Any, kinds: list[type], __: bool) -> Any:
        asked.append([kind.__name__ for kind in kinds])
        if len(asked) == 1:
            stream.observe(ObservationScope(folders=True))
        return vcenter._thing(vim.view.ContainerView)

    vcenter.content.viewManager = SimpleNamespace(CreateContainerView=view)
    stream.fill()
    assert not stream.heard
    stream.fill()
    assert stream.heard
    assert ["vim.Folder" in kinds for kinds in asked] == [False, True]
    assert vcenter.destroyed == 2, "what the first fill made"
