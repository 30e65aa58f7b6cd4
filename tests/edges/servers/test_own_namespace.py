"""The namespace of the Lease, the departures and the history: the first write into it makes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.support.past import night
from vgpuctl.kube.access import KubernetesSettings
from vgpuctl.kube.client import Client, NotAllowedError, NotFoundError, Object
from vgpuctl.kube.journal import History, Journal
from vgpuctl.kube.lease import ActingLease
from vgpuctl.kube.ledger import LedgerMap
from vgpuctl.model.departure import Departure
from vgpuctl.model.errors import ExitCode
from vgpuctl.model.ledger import Ledger
from vgpuctl.sim.inventory import Inventory
from vgpuctl.testing import Estate

NAMESPACES = "/api/v1/namespaces"
LEFT = Departure(timetable="day-night", host="esx-1", origin="day", to="night", since="", awake=(), carried={})


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Estate]:
    with Estate(tmp_path_factory.mktemp("namespaces") / "estate", Inventory("gpu", (), (), ()), frozen=True) as estate:
        yield estate


@pytest.fixture
def settings(estate: Estate, request: pytest.FixtureRequest) -> KubernetesSettings:
    """A namespace of the test's own, which does not exist yet."""
    estate.reset()
    return KubernetesSettings(kubeconfig=str(estate.kubeconfig))


def take_the_lease(client: Client) -> None:
    lease = ActingLease(client, client.settings.namespace)
    lease.acquire(lambda _: None, lambda: False)
    lease.release()


def record_a_departure(client: Client) -> None:
    LedgerMap(client, client.settings.namespace).write({LEFT.key: LEFT})


def write_the_history(client: Client) -> None:
    journal = Journal(client, client.settings.namespace, "laptop/1/aa", "ann@laptop")
    assert journal.close(night()) == ""


WRITES = pytest.mark.parametrize("write", [take_the_lease, record_a_departure, write_the_history])


@WRITES
def test_whichever_write_is_first_makes_it(settings: KubernetesSettings, write: Callable[[Client], None]) -> None:
    client = Client(settings)
    with pytest.raises(NotFoundError):
        client.get(f"{NAMESPACES}/vgpuctl")
    write(client)
    assert client.get(f"{NAMESPACES}/vgpuctl")["status"] == {"phase": "Active"}
    write(client)


def test_a_namespace_that_the_user_names_is_made_in_the_same_way(estate: Estate) -> None:
    client = Client(KubernetesSettings(kubeconfig=str(estate.kubeconfig), namespace="night-shift"))
    take_the_lease(client)
    assert client.get(f"{NAMESPACES}/night-shift/configmaps")["items"] == []
    assert client.get("/apis/coordination.k8s.io/v1/namespaces/night-shift/leases/vgpuctl")


class Overtaken(Client):
    """Another instance always makes the namespace a moment earlier."""

    def post(self, path: str, body: Object) -> Object:
        if path == NAMESPACES:
            super().post(path, body)
        return super().post(path, body)


@WRITES
def test_a_race_of_two_that_make_it_does_no_harm(settings: KubernetesSettings, write: Callable[[Client], None]) -> None:
    write(Overtaken(settings))


class Limited(Client):
    """An account that may not make namespaces."""

    def post(self, path: str, body: Object) -> Object:
        if path == NAMESPACES:
            raise NotAllowedError("namespaces is forbidden")
        return super().post(path, body)


def test_an_account_that_may_not_make_it_gets_the_command_that_does(settings: KubernetesSettings) -> None:
    with pytest.raises(NotAllowedError) as caught:
        take_the_lease(Limited(settings))
    error = caught.value
    assert error.exit_code is ExitCode.UNREACHABLE
    assert error.message == "The namespace vgpuctl does not exist, and this account may not create it."
    assert error.hint == (
        "kubectl create namespace vgpuctl\nWith all rights: vgpuctl rights kubernetes -n vgpuctl | kubectl apply -f -"
    )


def test_reading_makes_nothing_and_finds_nothing(settings: KubernetesSettings) -> None:
    client = Client(settings)
    assert Journal(client, "vgpuctl").read() == History()
    assert LedgerMap(client, "vgpuctl").read() == Ledger()
    with pytest.raises(NotFoundError):
        client.get(f"{NAMESPACES}/vgpuctl")
