"""Which workers words mean: ranges that fold and unfold, globs, and selectors as kubectl reads them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.fleets import fleet, node, worker
from vgpuctl.basics.names import Names, expand, fold, natural
from vgpuctl.model.errors import UsageError
from vgpuctl.model.hosts import Host
from vgpuctl.model.selectors import parse_selector
from vgpuctl.planning.selection import Selection, workers_or_hosts
from vgpuctl.sim.kube.api.errors import ApiError
from vgpuctl.sim.kube.api.selectors import label_test

NAMES = st.lists(st.from_regex(r"[ab]-?[0-9]{0,3}(\.lab)?", fullmatch=True), max_size=40)
KEYS, VALUES = st.sampled_from(["a", "b", "x.io/c"]), st.sampled_from(["", "1", "2", "v.w", "in"])
OPERATORS = st.sampled_from(["=", "==", "!=", " = "])
REQUIREMENTS = st.one_of(
    st.builds("{}{}{}".format, KEYS, OPERATORS, VALUES),
    st.builds("{} {} ({}, {})".format, KEYS, st.sampled_from(["in", "notin"]), VALUES, VALUES),
    st.builds("{}{}".format, st.sampled_from(["", "!", "! "]), KEYS),
)


@given(NAMES)
def test_what_is_folded_unfolds_to_the_same_names(names: list[str]) -> None:
    unfolded = [name for pattern in fold(names) for name in expand(pattern)]
    assert sorted(unfolded) == sorted(set(names))


def test_people_count_as_people_do() -> None:
    assert fold(["w-10", "w-9", "w-8", "x", "n-08", "n-09", "n-10"]) == ["n-[08-10]", "w-[8-10]", "x"]
    assert fold(["w-1", "w-2"]) == ["w-1", "w-2"]
    assert sorted(["w-10", "w-2"], key=natural) == ["w-2", "w-10"]
    assert sorted(["w-10", "w-009", "w-b", "w", "10"], key=natural) == ["10", "w", "w-009", "w-10", "w-b"]


def test_a_name_of_endless_digits_is_sorted_and_folded_like_any_other() -> None:
    """Python's `int` refuses more than 4,300 of them."""
    endless = f"w-{'9' * 5000}"
    assert sorted([endless, "w-10"], key=natural) == ["w-10", endless]
    assert fold([endless, "w-10"]) == ["w-10", endless]


@given(st.lists(REQUIREMENTS, max_size=3), st.dictionaries(KEYS, VALUES))
def test_selectors_mean_what_they_mean_to_a_server(parts: list[str], labels: dict[str, str]) -> None:
    """The simulated server has a parser of its own."""
    text = ",".join(parts)
    assert parse_selector(text).matches(labels) == label_test(text)(labels)


@pytest.mark.parametrize(
    ("text", "place"),
    [("a in (b", 8), ("a,", 3), ("a=b c=d", 5), ("a in ()", 7), ("-a=b", 1), ("!", 2), ("a=b=c", 4), ("a b", 3)],
)
def test_what_cannot_be_understood_is_told_with_its_place(text: str, place: int) -> None:
    with pytest.raises(UsageError, match=f"at character {place}:"):
        parse_selector(text)
    if text not in {"a in ()"}:
        with pytest.raises(ApiError):
            label_test(text)


def test_numbers_are_compared_as_numbers() -> None:
    assert parse_selector("gpus>9").matches({"gpus": "10"})
    assert not parse_selector("gpus<9").matches({"gpus": "many"})


FLEET = fleet(
    *(worker(f"worker-{n}", node=node(f"worker-{n}", labels={"zone": "ab"[n % 2]})) for n in range(1, 5)),
    worker("bare", node=None),
    missing=("worker-9",),
)


@pytest.mark.parametrize(
    ("names", "selector", "meant"),
    [
        ((), None, {"worker-1", "worker-2", "worker-3", "worker-4", "bare", "worker-9"}),
        (("worker-[2-3]", "bare"), None, {"worker-2", "worker-3", "bare"}),
        (("worker-*",), "zone=a", {"worker-2", "worker-4"}),
        ((), "!zone", set()),
        (("worker-9",), None, {"worker-9"}),
    ],
)
def test_words_mean_workers(names: tuple[str, ...], selector: str | None, meant: set[str]) -> None:
    selection = Selection(Names(names) if names else None, None if selector is None else parse_selector(selector))
    selection.check(FLEET)
    assert selection.of(FLEET) == meant


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("worker-33", "no worker worker-33; did you mean worker-"),
        ("worker-[3-8]", r"no worker worker-\[5-8\]\."),
        ("gpu-*", r"called gpu-\*"),
    ],
)
def test_words_that_mean_none_are_refused(name: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        Selection(Names((name,))).check(FLEET)


def test_names_of_workers_and_hosts_mean_the_workers() -> None:
    some = fleet(
        worker("w-1"), worker("w-2", host="esx-2"), worker("w-10", host="esx-2"), worker("esx-1", host="esx-2")
    )

    def meant(*patterns: str) -> list[str]:
        return [each.name for each in workers_or_hosts(some, Names(patterns))]

    assert meant("w-[1-2]") == ["w-1", "w-2"]
    assert meant("w-10", "esx-2") == ["esx-1", "w-2", "w-10"], "each once, as people count"
    assert meant("esx-1") == ["esx-1"], "the worker, not the host of the same name"
    assert meant("w-*") == ["w-1", "w-2", "w-10"]
    assert meant("*-2") == ["w-2"], "a glob means hosts only if it means no worker"
    assert meant("e*2") == ["esx-1", "w-2", "w-10"]


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        ("w-3", "No worker or host is called w-3; did you mean w-1?"),
        ("x*", "No worker or host is called x*."),
        ("gone", "gone is in profiles.yaml, but vCenter has no VM of this name."),
        ("bare", "No worker is on bare."),
    ],
)
def test_a_pattern_that_means_no_worker_is_refused(pattern: str, told: str) -> None:
    some = fleet(worker("w-1"), missing=("gone",))
    some = replace(some, hosts={**some.hosts, "bare": Host(name="bare")})
    with pytest.raises(UsageError) as caught:
        workers_or_hosts(some, Names(("w-1", pattern)))
    assert caught.value.message == told
