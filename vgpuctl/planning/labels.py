"""What a node's labels should say: its profile, and the facts that people select by."""

from __future__ import annotations

import re
from collections.abc import Mapping

from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.hosts import Card
from vgpuctl.model.profiles import Catalogue
from vgpuctl.model.record import CARD, FACTS, FRAME, HOST, VGPU
from vgpuctl.planning.cards.card_rules import frame_gib

#: Labels by their keys; None: the label is to be taken off. Keys that are left out are not known now and stay.
Labels = Mapping[str, str | None]

_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


def labels_of(fleet: Fleet, catalogue: Catalogue, worker: Worker, vgpus: tuple[str, ...]) -> Labels:
    """True for a worker that carries these vGPUs."""
    frames = [frame_gib(_cards(fleet, worker), vgpu) for vgpu in vgpus]
    labels: dict[str, str | None] = {
        catalogue.label: catalogue.carried(vgpus),
        VGPU: _value(".".join(dict.fromkeys(vgpus))),
        FRAME: str(1024 * min(frame or 0 for frame in frames)) if frames and all(frames) else None,
        HOST: _value(worker.host),
    }
    models = _models(fleet, worker) if vgpus else set()
    if not vgpus or len(models) == 1:
        labels[CARD] = _value(next(iter(models), "").replace(" ", "-"))
    return labels


def taken_off(catalogue: Catalogue) -> Labels:
    """For a node that is no worker of ours any more."""
    return dict.fromkeys((catalogue.label, *FACTS))


def _models(fleet: Fleet, worker: Worker) -> set[str]:
    """The models of the cards that it may be on: of that which holds it, where its host says so."""
    cards = _cards(fleet, worker)
    return {card.model for card in cards if worker.name in card.holds} or {card.model for card in cards}


def _cards(fleet: Fleet, worker: Worker) -> tuple[Card, ...]:
    return fleet.hosts[worker.host].cards if worker.host in fleet.hosts else ()


def _value(text: str) -> str | None:
    """A text that no label can hold is no label: a shortened one would be somebody else's name."""
    return text if _VALUE.fullmatch(text) else None
