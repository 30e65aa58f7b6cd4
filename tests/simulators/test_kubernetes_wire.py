"""Kubernetes over TLS: who is let in, how much, and streams."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.support.kubernetes_cluster import MERGE
from tests.support.kubernetes_served import TOKEN, authorization, connect, first_record, http, standing_still
from vgpuctl.sim.kube.api.app import BODY_LIMIT
from vgpuctl.testing import Estate


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Estate]:
    """One for all tests: none needs what another has changed."""
    with standing_still(tmp_path_factory.mktemp("served")) as estate:
        yield estate


@pytest.mark.parametrize("header", ["", "Bearer wrong", "Basic YTpi", f"Bearer {TOKEN}x"])
def test_without_the_token_nothing_is_told(served: Estate, header: str) -> None:
    answer = http(served, "GET", "/api/v1/nodes", Authorization=header)
    assert (answer.code, answer.body["reason"]) == (401, "Unauthorized")


def test_a_body_that_is_too_large_is_refused(served: Estate) -> None:
    answer = http(served, "POST", "/api/v1/namespaces/default/configmaps", b"x" * (BODY_LIMIT + 1))
    assert (answer.code, answer.body["reason"]) == (413, "RequestEntityTooLarge")
    assert http(served, "GET", "/api/v1/nodes").code == 200


def test_a_watch_streams_and_ends_when_its_time_is_up(served: Estate) -> None:
    connection = connect(served)
    path = "/api/v1/nodes?watch=true&timeoutSeconds=30&allowWatchBookmarks=true&fieldSelector=metadata.name=worker-1"
    connection.request("GET", path, headers=authorization())
    response = connection.getresponse()
    assert json.loads(response.readline())["type"] == "ADDED"
    change = {"metadata": {"labels": {"a": "b"}}}
    http(served, "PATCH", "/api/v1/nodes/worker-1", json.dumps(change).encode(), Content_Type=MERGE)
    assert json.loads(response.readline())["object"]["metadata"]["labels"]["a"] == "b"
    served.advance(31)
    *_, last = [json.loads(line) for line in response.read().splitlines()]
    assert last["type"] == "BOOKMARK"
    connection.close()


def test_a_watch_whose_client_left_is_forgotten(served: Estate) -> None:
    connection = connect(served)
    connection.request("GET", "/api/v1/nodes?watch=true", headers=authorization())
    response = connection.getresponse()
    response.readline()
    assert watches(served) == 1
    response.close()
    connection.close()
    for _ in range(200):
        if not watches(served):
            break
        http(served, "GET", "/version")
    assert not watches(served)


def watches(served: Estate) -> int:
    return served.within(lambda world: len(world.api.watches))


def test_an_answer_goes_out_in_one_piece(served: Estate) -> None:
    head, _, body = first_record(served, "/version").partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert json.loads(body)["major"] == "1"
