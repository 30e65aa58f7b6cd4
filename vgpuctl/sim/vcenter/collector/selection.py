"""The objects that a filter selects: a walk along its traversals, updated one object at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from vgpuctl.sim.vcenter.wire.vmomi import support, vmodl

_Traversal = vmodl.query.PropertyCollector.TraversalSpec
_NO_SELECTOR = -1
Follow = Callable[[Any, str], Any]
"""Reads a property of a reference: one reference, several, or None."""


class UnknownSelection(KeyError):  # noqa: N818
    """A selection by a name that no traversal has."""


class Visit(NamedTuple):
    """One object, and the set of traversals to follow from there."""

    moid: str
    selector: int


class Step(NamedTuple):
    """The visit that a traversal leads to, and whether it selects the object."""

    visit: Visit
    selects: bool


@dataclass
class Selection:
    """The selected objects. `selected` counts the ways to each: it leaves when the last way is gone."""

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
            self._add_step(self._step(spec.obj, spec.selectSet, not spec.skip))

    def concerns(self, moid: str) -> bool:
        return moid in self._visits_of or moid in self.selected

    def refresh(self, moid: str) -> dict[str, None]:
        """Walk on from one object that changed; return the objects that entered or left the selection."""
        changed: dict[str, None] = {}
        for visit in tuple(self._visits_of.get(moid, ())):
            if visit not in self._steps:
                continue  # an earlier step of this loop removed it
            old, new = self._steps[visit], self._steps_from(visit)
            if old == new:
                continue
            self._steps[visit] = new
            before, after = Counter(old), Counter(new)
            entered, left = list((after - before).elements()), list((before - after).elements())
            for step in entered:
                self._add_step(step)
            for step in left:
                self._remove_step(step)
            changed |= {step.visit.moid: None for step in (*entered, *left)}
        return changed

    def _remember_names(self, select_set: Iterable[Any]) -> None:
        for spec in select_set or ():
            if isinstance(spec, _Traversal):
                # vSphere API: a traversal may be named by others and by itself.
                # Measured: govc 0.56 finds ancestors by such recursion.
                if spec.name:
                    self._named[spec.name] = spec
                self._remember_names(spec.selectSet)

    def _step(self, ref: Any, select_set: list[Any], selects: bool) -> Step:
        self.refs[ref._moId] = ref
        return Step(Visit(ref._moId, self._number(select_set)), selects)

    def _number(self, select_set: list[Any]) -> int:
        """Return a number for a set of traversals, which has no name of its own. All empty sets have the
        same number.
        """
        # Most objects lead nowhere further, so they need no visit of their own.
        if not select_set:
            return _NO_SELECTOR
        if id(select_set) not in self._numbers:
            self._numbers[id(select_set)] = len(self._numbers)
            self._selectors.append(select_set)
        return self._numbers[id(select_set)]

    def _add_step(self, step: Step) -> None:
        pending = [step]
        while pending:
            (moid, selector), selects = pending.pop()
            if selects:
                self.selected[moid] = self.selected.get(moid, 0) + 1
            if selector != _NO_SELECTOR:
                pending += reversed(self._add_visit(Visit(moid, selector)))

    def _add_visit(self, visit: Visit) -> list[Step]:
        """Return the steps from here, if this is the first way to here."""
        self._reached[visit] = self._reached.get(visit, 0) + 1
        if self._reached[visit] > 1:
            return []
        self._visits_of.setdefault(visit.moid, set()).add(visit)
        self._steps[visit] = self._steps_from(visit)
        return self._steps[visit]

    def _remove_step(self, step: Step) -> None:
        pending = [step]
        while pending:
            visit, selects = pending.pop()
            if selects:
                self.selected[visit.moid] -= 1
                if not self.selected[visit.moid]:
                    del self.selected[visit.moid]
            if visit.selector != _NO_SELECTOR:
                pending += self._remove_visit(visit)
            if not self.concerns(visit.moid):
                self.refs.pop(visit.moid, None)

    def _remove_visit(self, visit: Visit) -> list[Step]:
        """Return the steps from here, if this was the last way to here."""
        self._reached[visit] -= 1
        if self._reached[visit]:
            return []
        del self._reached[visit]
        visits = self._visits_of[visit.moid]
        visits.discard(visit)
        if not visits:
            del self._visits_of[visit.moid]
        return self._steps.pop(visit, [])

    def _steps_from(self, visit: Visit) -> list[Step]:
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
