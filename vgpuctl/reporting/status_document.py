"""The estate as a document for programs. docs/reference/status.md describes each field, and a test compares the two."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from vgpuctl.model.fleet import Node
from vgpuctl.model.hosts import Card, Host
from vgpuctl.model.pods import Quota
from vgpuctl.planning.pods.drain import leaving_pods
from vgpuctl.reporting.deviations import Deviation
from vgpuctl.reporting.holds import hold_document
from vgpuctl.reporting.orders import order_document, parked_document, retry_document
from vgpuctl.reporting.pending_pods import Waiting
from vgpuctl.reporting.situation import JudgedWorker, Resting, Situation, node_word
from vgpuctl.reporting.timetable_state import TimetableState, Waking
from vgpuctl.reporting.verdicts import hindrance_documents

Document = dict[str, Any]


def document(situation: Situation) -> Document:
    """Return the document. It always has every key; an unknown value is null."""
    quotas = situation.quotas
    return {
        "apiVersion": "vgpuctl.io/v1",
        "kind": "Status",
        "observedAt": _time(situation.now),
        "stale": [
            {"server": name, "since": _time(since), "why": situation.fleet.silence.get(name) or None}
            for name, since in situation.stale.items()
        ],
        "timetables": [_timetable(state) for state in situation.states],
        "pause": order_document(situation.pause) if situation.pause else None,
        "maintenance": [order_document(order) for order in situation.maintenance],
        "parked": [parked_document(outcome) for outcome in situation.parked],
        "hindered": [document for each in situation.hindered for document in hindrance_documents(each)],
        "retrying": [retry_document(outcome) for outcome in situation.retried],
        "hosts": [_host(situation, host) for host in situation.hosts],
        "workers": [_worker(situation, judged) for judged in situation.workers],
        "missing": list(situation.missing),
        "waiting": [_waiting(each) for each in situation.waiting],
        "workloads": [_resting(each) for each in situation.resting],
        "quotas": None if quotas is None else [_quota(situation, quota) for quota in quotas],
        "outOfStep": [_finding(finding) for finding in situation.findings],
    }


def _time(when: datetime | None) -> str | None:
    return when.isoformat(timespec="seconds") if when else None


def _timetable(state: TimetableState) -> Document:
    return {
        "name": state.timetable.name,
        "timezone": state.timetable.timezone,
        "current": state.current,
        "due": state.due,
        "since": _time(state.since),
        "next": state.next_shift,
        "nextStart": _time(state.next_start),
        "override": _override(state),
    }


def _override(state: TimetableState) -> Document | None:
    order = state.override
    # The timetable is the one around it, and not said twice.
    return {key: value for key, value in order_document(order).items() if key != "timetable"} if order else None


def _host(situation: Situation, host: Host) -> Document:
    cards = sorted((*host.cards, *host.unshared), key=lambda card: card.pci_id)
    return {
        "name": host.name,
        "cluster": host.cluster or None,
        "connected": host.connected,
        "maintenance": host.maintenance,
        "cards": [_card(situation, card) for card in cards],
    }


def _card(situation: Situation, card: Card) -> Document:
    return {
        "pciId": card.pci_id,
        "model": card.model,
        "mode": card.mode.value,
        "shared": card.shared,
        "frameMiB": card.frame_mib,
        "usedMiB": situation.used_mib(card),
        "holds": list(card.holds),
    }


def _worker(situation: Situation, judged: JudgedWorker) -> Document:
    worker, task = judged.worker, judged.worker.busy_with
    return {
        "name": worker.name,
        "host": worker.host or None,
        "power": worker.power.value,
        "task": task.kind if task else None,
        "vgpus": list(worker.vgpus),
        "profile": situation.catalogue.carried(worker.vgpus),
        "wantedProfile": worker.profile,
        "timetable": judged.timetable,
        "shouldBeAwake": judged.awake,
        "wakes": _waking(judged.waking),
        "question": worker.question or None,
        "managedBy": worker.managed_by or None,
        "hold": hold_document(worker.hold),
        "doubts": list(worker.doubts),
        "node": _node(situation, judged, worker.node) if worker.node else None,
    }


def _waking(waking: Waking | None) -> Document | None:
    if waking is None:
        return None
    return {
        "timetable": waking.timetable,
        "shift": waking.shift,
        "start": _time(waking.start),
        "due": waking.due,
    }


def _node(situation: Situation, judged: JudgedWorker, node: Node) -> Document:
    record = node.record
    return {
        "name": node.name,
        "state": node_word(judged),
        "ready": node.ready,
        "unschedulable": node.unschedulable,
        "cordonedBy": node.cordoned_by or None,
        "cordonedSince": node.cordoned_since or None,
        "label": node.labels.get(situation.catalogue.label),
        "gpus": node.gpus,
        "pods": [{"namespace": pod.namespace, "name": pod.name} for pod in leaving_pods(node)],
        "record": {
            "for": record.wish,
            "state": record.state or None,
            "since": record.since or None,
            "cordoned": record.cordoned,
        }
        if record
        else None,
    }


def _waiting(each: Waiting) -> Document:
    demand = each.pod.demand
    return {
        "namespace": each.pod.namespace,
        "name": each.pod.name,
        "profiles": list(each.profiles),
        "gpus": demand.gpus if demand else None,
        "awakeNow": each.outlook.awake,
        "wakes": _waking(each.outlook.waking),
        "scheduler": demand.unplaced or None if demand else None,
    }


def _resting(each: Resting) -> Document:
    workload, scaled = each.workload, each.workload.scaled
    return {
        "namespace": workload.namespace,
        "kind": workload.kind,
        "name": workload.name,
        "replicasBefore": scaled.replicas if scaled else None,
        "for": scaled.shift or None if scaled else None,
        "since": scaled.since or None if scaled else None,
        "wakes": _waking(each.waking),
    }


def _quota(situation: Situation, quota: Quota) -> Document:
    return {
        "namespace": quota.namespace,
        "name": quota.name,
        "used": quota.used,
        "hard": quota.hard,
        "heldByWaiting": situation.held_by_waiting(quota),
    }


def _finding(finding: Deviation) -> Document:
    return {
        "kind": finding.kind,
        "name": finding.name,
        "what": finding.what,
        "since": finding.since or None,
        "remedy": finding.remedy or None,
    }
