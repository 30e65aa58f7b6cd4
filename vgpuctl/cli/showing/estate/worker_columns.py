"""The columns of the workers' table. A new column is one function and one row of COLUMNS."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from rich.text import Text

from vgpuctl.basics.phrases import folded_names
from vgpuctl.cli.showing.estate.layout import cell
from vgpuctl.cli.showing.estate.remarks import power_word
from vgpuctl.planning.pods.drain import leaving_pods
from vgpuctl.reporting.situation import JudgedWorker, Situation, node_word

_NODE_STYLES = {"ready": "", "asleep": "dim", "cordoned": "yellow", "not ready": "red", "down": "red", "none": "red"}


class Column(NamedTuple):
    """One column of the workers' table.

    `of`: makes the cell for a group of similar workers. `wide`: only in `-o wide`.
    """

    head: str
    of: Callable[[Situation, list[JudgedWorker]], Text]
    wide: bool = False


def _name(_: Situation, group: list[JudgedWorker]) -> Text:
    return cell(folded_names((each.worker.name for each in group), 30) if len(group) > 1 else group[0].worker.name)


def _power(_: Situation, group: list[JudgedWorker]) -> Text:
    worker = group[0].worker
    return cell(power_word(worker), "cyan" if worker.busy_with else "")


def _profile(situation: Situation, group: list[JudgedWorker]) -> Text:
    return cell(carried(situation, group[0]))


def _vgpu(_: Situation, group: list[JudgedWorker]) -> Text:
    return cell(" ".join(group[0].worker.vgpus) or "–")


def _host(_: Situation, group: list[JudgedWorker]) -> Text:
    return cell(group[0].worker.host or "–")


def _node(_: Situation, group: list[JudgedWorker]) -> Text:
    word = node_word(group[0])
    return Text(word, _NODE_STYLES[word])


def _label(situation: Situation, group: list[JudgedWorker]) -> Text:
    node = group[0].worker.node
    return cell(node.labels.get(situation.catalogue.label, "–") if node else "–")


def _pods(_: Situation, group: list[JudgedWorker]) -> Text:
    """Return how many pods a drain of the group would have to move."""
    if not any(judged.worker.on for judged in group):
        return Text("–")
    return Text(str(sum(len(leaving_pods(judged.worker.node)) for judged in group)))


COLUMNS = (
    Column("WORKER", _name),
    Column("VM", _power),
    Column("PROFILE", _profile),
    Column("VGPU", _vgpu, wide=True),
    Column("HOST", _host, wide=True),
    Column("NODE", _node),
    Column("LABEL", _label, wide=True),
    Column("PODS", _pods),
)


def carried(situation: Situation, judged: JudgedWorker) -> str:
    return situation.catalogue.carried(judged.worker.vgpus) or " ".join(judged.worker.vgpus) or "–"
