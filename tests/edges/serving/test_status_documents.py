"""The status document that the daemon serves."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.support.fleets import CATALOGUE, fleet, node, worker
from vgpuctl.daemon.serving.status_documents import StatusDocuments
from vgpuctl.files import Files
from vgpuctl.model.fleet import Fleet

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)


class Picture:
    """A picture and nothing else: there is no server that could be asked. A look takes as long as a test says."""

    def __init__(self) -> None:
        self.now_s, self.look_s, self.looks = 0.0, 0.0, 0

    def fleet(self) -> Fleet:
        self.looks += 1
        self.now_s += self.look_s
        return fleet(worker("worker-1", node=node("worker-1")))


def documents(picture: Picture) -> StatusDocuments:
    made = StatusDocuments(lambda: NOON, lambda: picture.now_s)
    made.connect(picture, lambda: Files(CATALOGUE, {}))
    return made


def test_before_the_first_picture_there_is_none() -> None:
    assert StatusDocuments(lambda: NOON).current() is None


def test_it_is_made_at_most_once_a_second_however_many_readers_ask() -> None:
    picture = Picture()
    served = documents(picture)
    for _ in range(50):
        document = served.current()
        assert document is not None
        assert [each["name"] for each in document["workers"]] == ["worker-1"]
    assert picture.looks == 1
    picture.now_s = 1.0
    served.current()
    assert picture.looks == 2


def test_in_a_large_estate_it_is_kept_for_four_times_as_long_as_it_took() -> None:
    picture = Picture()
    picture.look_s = 2.0
    served = documents(picture)
    served.current()
    picture.now_s = 9.9
    served.current()
    assert picture.looks == 1
    picture.now_s = 10.0
    served.current()
    assert picture.looks == 2
