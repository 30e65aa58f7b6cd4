"""What a node's labels should say: its profile, and facts for label selectors."""

from __future__ import annotations

import re
from collections.abc import Mapping

from vgpuctl.model.fleet import Fleet, Worker
from vgpuctl.model.hosts import Card
from vgpuctl.model.profiles import Catalogue
from vgpuctl.model.record import CARD, FACT_LABELS, FRAME, HOST, VGPU
from vgpuctl.planning.cards.card_rules import frame_gib

#: Labels by their keys. None takes a label off. A key that is left out is not known now, and its label stays.
Labels = Mapping[str, str | None]

#: Kubernetes: a label value has at most 63 characters, alphanumeric ends, and `-_.` inside.
_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


def labels_of(fleet: Fleet, catalogue: Catalogue, worker: Worker, vgpus: tuple[str, ...]) -> Labels:
    """Return the labels that are true of a worker that carries these vGPUs."""
    frames = [frame_gib(_cards(fleet, worker), vgpu) for vgpu in vgpus]
    # The label follows the VM's devices. A state label said success after a failure (k8s-vgpu-device-manager PR 15).
    labels: dict[str, str | None] = {
        catalogue.label: catalogue.carried(vgpus),
        VGPU: _value(".".join(dict.fromkeys(vgpus))),
        FRAME: str(1024 * min(frame or 0 for frame in frames)) if frames and all(frames) else None,
        HOST: _value(worker.host),
    }
    models = _models(fleet, worker) if vgpus else set()
    # vSphere: the card is vCenter's choice, so with several models the label is left as it is.
    if not vgpus or len(models) == 1:
        labels[CARD] = _value(next(iter(models), "").replace(" ", "-"))
    return labels


def taken_off(catalogue: Catalogue) -> Labels:
    """Return the labels to take off a node that is no worker of ours any more."""
    return dict.fromkeys((catalogue.label, *FACT_LABELS))


def _models(fleet: Fleet, worker: Worker) -> set[str]:
    """Return the models of the cards it may be on: of the card that holds it, if its host reports that card."""
    cards = _cards(fleet, worker)
    return {card.model for card in cards if worker.name in card.holds} or {card.model for card in cards}


def _cards(fleet: Fleet, worker: Worker) -> tuple[Card, ...]:
    return fleet.hosts[worker.host].cards if worker.host in fleet.hosts else ()


def _value(text: str) -> str | None:
    """Return the text as a label value; None if no label can hold it.

    A shortened text might be the name of something else.
    """
    return text if _VALUE.fullmatch(text) else None
