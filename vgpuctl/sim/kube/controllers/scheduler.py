"""The scheduler: binds pods to nodes, and says why others wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from vgpuctl.sim.kube.controllers.controller_context import ControllerContext, Teller
from vgpuctl.sim.kube.controllers.node_capacity import NodeCapacity, Room
from vgpuctl.sim.kube.controllers.node_choice import CROWDED, FULL, NodeChoice, Wish, choice, kind_of
from vgpuctl.sim.kube.controllers.queue import HEARD_AFTER_S, Queue
from vgpuctl.sim.kube.objects import (
    Object,
    condition,
    is_finished,
    is_leaving,
    name_of,
    namespace_of,
    set_condition,
)
from vgpuctl.sim.kube.store import Change, Key, key_of

_TELLER = Teller("default-scheduler")
# A real scheduler backs off from a pod for 1 to 10 s, so its words follow a stormy cluster with a delay.
RETELL_S = 5.0


@dataclass(slots=True)
class Objections:
    """What speaks against each node, and how many nodes each of these words concerns: counted as they change, for a
    large cluster has many nodes and few words."""

    _of: dict[str, list[str]] = field(default_factory=dict)
    _counts: Counter[str] = field(default_factory=Counter)
    _full: int = 0

    def __bool__(self) -> bool:
        return bool(self._of)

    def judge(self, board: NodeCapacity, against: Callable[[Room], list[str]], names: list[str]) -> None:
        for name in names:
            self._forget(name)
            self._note(name, against(board[name]))
        if len(self._of) > len(board):
            for name in [name for name in self._of if name not in board]:
                self._forget(name)

    def _note(self, name: str, reasons: list[str]) -> None:
        self._of[name] = reasons
        self._counts.update(reasons)
        self._full += _is_full(reasons)

    def _forget(self, name: str) -> None:
        reasons = self._of.pop(name, [])
        self._counts.subtract(reasons)
        self._full -= _is_full(reasons)

    def told(self) -> str:
        if not self._of:
            return "no nodes available to schedule pods"
        total = len(self._of)
        texts = sorted(f"{count} {reason}" for reason, count in self._counts.items() if count)
        helpless = [f"{self._full} No preemption victims found for incoming pod"] if self._full else []
        helpless += [f"{total - self._full} Preemption is not helpful for scheduling"] if total > self._full else []
        said = f"0/{total} nodes are available: "
        return f"{said}{', '.join(texts)}. preemption: {said}{', '.join(helpless)}."


def _is_full(reasons: list[str]) -> bool:
    return bool(reasons) and reasons[0].startswith((FULL, CROWDED))


@dataclass(slots=True)
class Line:
    """Those who wait with the same wish. `against`: what speaks against each node; empty until one was refused."""

    wish: Wish
    pods: dict[Key, None] = field(default_factory=dict)
    against: Objections = field(default_factory=Objections)
    told: str = ""
    told_s: float = 0.0


class Scheduler:
    """Tries a pod when it appears, and those who wait when a node that they may like has changed or got room."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self.board = NodeCapacity(context)
        self._lines: dict[str, Line] = {}
        self._waiting: dict[Key, str] = {}
        self._untried: set[Key] = set()
        self._queue = Queue(context.clock, lambda _: self._try_all(), HEARD_AFTER_S)
        context.store.subscribe(["pods"], self._pod_changed)
        context.store.subscribe(["nodes"], lambda _: self._wake())

    def _pod_changed(self, change: Change) -> None:
        key, pod = key_of(change.object), change.object
        if change.type == "DELETED" or is_finished(pod) or is_leaving(pod) or pod["spec"].get("nodeName"):
            self._leave(key)
        elif change.before is None or change.before.get("spec") != pod.get("spec"):
            self._leave(key)
            self._join(key, pod)
        self._wake()

    def _join(self, key: Key, pod: Object) -> None:
        kind = kind_of(pod)
        if kind not in self._lines:
            self._lines[kind] = Line(Wish(pod))
        self._waiting[key] = kind
        self._lines[kind].pods[key] = None
        self._untried.add(key)

    def _leave(self, key: Key) -> None:
        kind = self._waiting.pop(key, None)
        if kind is not None:
            self._untried.discard(key)
            del self._lines[kind].pods[key]
            if not self._lines[kind].pods:
                del self._lines[kind]

    def _wake(self) -> None:
        """Without anybody waiting it is of no interest what has become free."""
        if not self._waiting:
            self.board.stirred.clear()
        elif self.board.stirred or self._untried:
            self._queue.add(("", ""))

    def _try_all(self) -> None:
        stirred = self.board.there(sorted(self.board.stirred))
        self.board.stirred.clear()
        for line in tuple(self._lines.values()):
            self._serve(line, stirred)

    def _serve(self, line: Line, stirred: list[str]) -> None:
        """Whoever was refused once needs to look at those nodes only in which something has changed since."""
        choose = NodeChoice(self.board, line.wish, stirred) if line.against else choice(self.board, line.wish)
        for key in tuple(line.pods):
            node = choose.best()
            if node is None:
                break
            self._bind(key, node)
        if line.pods:
            names = stirred if line.against else list(self.board)
            line.against.judge(self.board, line.wish.against, names)
            self._tell(line)

    def _bind(self, key: Key, node: str) -> None:
        now = self._context.clock.utc()

        def bind(item: Object) -> None:
            item["spec"]["nodeName"] = node
            set_condition(item, now, {"type": "PodScheduled", "status": "True"})

        if pod := self._context.store.edit("pods", *key, bind):
            said = f"Successfully assigned {namespace_of(pod)}/{name_of(pod)} to {node}"
            self._context.tell(pod, _TELLER, "Scheduled", said)

    def _tell(self, line: Line) -> None:
        """New pods are told at once why they wait, the others not too often."""
        why, now_s = line.against.told(), self._context.clock.now_s
        retell = why != line.told and (not line.told or now_s >= line.told_s + RETELL_S)
        for key in tuple(line.pods):
            if retell or key in self._untried:
                self._refuse(key, why)
                self._untried.discard(key)
        if retell:
            line.told, line.told_s = why, now_s
        elif why != line.told:
            self._context.clock.after(line.told_s + RETELL_S - now_s, lambda: self._retell(line))

    def _retell(self, line: Line) -> None:
        if line.pods and line.against.told() != line.told:
            self._tell(line)

    def _refuse(self, key: Key, why: str) -> None:
        now, pod = self._context.clock.utc(), self._context.store.get("pods", *key)
        said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why}
        if pod is None or (condition(pod, "PodScheduled") or {}).items() >= said.items():
            return
        self._context.store.edit("pods", *key, lambda item: set_condition(item, now, said))
        self._context.tell(pod, _TELLER, "FailedScheduling", why, warning=True)
