"""Which objects a filter selects: a walk along its traversals, brought up to date one object at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from vgpuctl.sim.vcenter.wire.vmomi import support, vmodl

_Traversal = vmodl.query.PropertyCollector.TraversalSpec
_END = -1
Follow = Callable[[Any, str], Any]
"""Reads a property of a reference: one reference, several, or None where there is none."""


class UnknownSelection(KeyError):  # noqa: N818
    """A selection by a name that no traversal has."""


class Visit(NamedTuple):
    """One object, reached with one set of traversals still to follow from there."""

    moid: str
    selector: int


class Step(NamedTuple):
    """Where a traversal led."""

    visit: Visit
    selects: bool


@dataclass
class Selection:
    """`selected` counts the ways that lead to each object: it leaves when the last of them is gone."""

    specs: Sequence[Any]
    follow: Follow
    selected: dict[str, int] = field(default_factory=dict)
    refs: dict[str, Any] = field(default_factory=dict)
    _steps: dict[Visit, list[Step]] = field(default_factory=dict)
    _reached: dict[Visit, int] = field(default_factory=dict)
    _visits_of: dict[str, set[Visit]] = field(default_factory=dict)
    _selectors: list[list[Any]] = field(default_factory=list)
    _numbers: dict[int, int] = field(default_factory=dict)
    _named: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for spec in self.specs:
            self._remember_names(spec.selectSet)
        for spec in self.specs:
            self._arrive(self._step(spec.obj, spec.selectSet, not spec.skip))

    def concerns(self, moid: str) -> bool:
        return moid in self._visits_of or moid in self.selected

    def refresh(self, moid: str) -> dict[str, None]:
        """Walk on from one object that has changed; the answer names what entered or left."""
        moved: dict[str, None] = {}
        for visit in tuple(self._visits_of.get(moid, ())):
            if visit not in self._steps:
                continue  # it departed with another
            old, new = self._steps[visit], self._look(visit)
            if old == new:
                continue
            self._steps[visit] = new
            before, after = Counter(old), Counter(new)
            came, went = list((after - before).elements()), list((before - after).elements())
            for step in came:
                self._arrive(step)
            for step in went:
                self._depart(step)
            moved |= {step.visit.moid: None for step in (*came, *went)}
        return moved

    def _remember_names(self, select_set: Iterable[Any]) -> None:
        for spec in select_set or ():
            if isinstance(spec, _Traversal):
                if spec.name:
                    self._named[spec.name] = spec
                self._remember_names(spec.selectSet)

    def _step(self, ref: Any, select_set: list[Any], selects: bool) -> Step:
        self.refs[ref._moId] = ref
        return Step(Visit(ref._moId, self._number(select_set)), selects)

    def _number(self, select_set: list[Any]) -> int:
        """Traversals have no name of their own; all ends of the walk are alike."""
        if not select_set:
            return _END
        if id(select_set) not in self._numbers:
            self._numbers[id(select_set)] = len(self._numbers)
            self._selectors.append(select_set)
        return self._numbers[id(select_set)]

    def _arrive(self, step: Step) -> None:
        waiting = [step]
        while waiting:
            (moid, selector), selects = waiting.pop()
            if selects:
                self.selected[moid] = self.selected.get(moid, 0) + 1
            if selector != _END:
                waiting += reversed(self._reach(Visit(moid, selector)))

    def _reach(self, visit: Visit) -> list[Step]:
        """The steps onward, where nobody has been before."""
        self._reached[visit] = self._reached.get(visit, 0) + 1
        if self._reached[visit] > 1:
            return []
        self._visits_of.setdefault(visit.moid, set()).add(visit)
        self._steps[visit] = self._look(visit)
        return self._steps[visit]

    def _depart(self, step: Step) -> None:
        waiting = [step]
        while waiting:
            visit, selects = waiting.pop()
            if selects:
                self.selected[visit.moid] -= 1
                if not self.selected[visit.moid]:
                    del self.selected[visit.moid]
            if visit.selector != _END:
                waiting += self._leave(visit)
            if not self.concerns(visit.moid):
                self.refs.pop(visit.moid, None)

    def _leave(self, visit: Visit) -> list[Step]:
        """The steps onward, once the last way to here is gone."""
        self._reached[visit] -= 1
        if self._reached[visit]:
            return []
        del self._reached[visit]
        visits = self._visits_of[visit.moid]
        visits.discard(visit)
        if not visits:
            del self._visits_of[visit.moid]
        return self._steps.pop(visit, [])

    def _look(self, visit: Visit) -> list[Step]:
        ref = self.refs[visit.moid]
        found: list[Step] = []
        for spec in self._selectors[visit.selector]:
            traversal = spec if isinstance(spec, _Traversal) else self._by_name(spec.name)
            if isinstance(ref, traversal.type):
                targets = _as_list(self.follow(ref, traversal.path))
                found += [self._step(target, traversal.selectSet, not traversal.skip) for target in targets]
        return found

    def _by_name(self, name: str) -> Any:
        if name not in self._named:
            raise UnknownSelection(name)
        return self._named[name]


def _as_list(value: Any) -> list[Any]:
    if isinstance(value, support.ManagedObject):
        return [value]
    return [item for item in value if isinstance(item, support.ManagedObject)] if isinstance(value, list) else []
