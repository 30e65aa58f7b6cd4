"""The metrics that are read from the status document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from vgpuctl.daemon.serving.metric import Document, DocumentMetric, Sample, age_s, timestamp
from vgpuctl.model.record import LEAVING

MIB = 1024 * 1024
SERVERS = ("vCenter", "Kubernetes")


def _shifts(which: str) -> Callable[[Document], Iterator[Sample]]:
    def found(document: Document) -> Iterator[Sample]:
        for each in document["timetables"]:
            if each[which] is not None:
                yield (each["name"], each[which]), 1

    return found


def _late(document: Document) -> Iterator[Sample]:
    for each in document["timetables"]:
        late_s = 0.0 if each["current"] == each["due"] else age_s(document, each["since"])
        if late_s is not None:
            yield (each["name"],), late_s


def _next_start(document: Document) -> Iterator[Sample]:
    for each in document["timetables"]:
        if (start := timestamp(each["nextStart"])) is not None:
            yield (each["name"], each["next"]), start


def _overrides(document: Document) -> Iterator[Sample]:
    for each in document["timetables"]:
        if each["override"] is not None:
            yield (each["name"], each["override"]["shift"]), 1


def _paused(document: Document) -> Iterator[Sample]:
    yield (), float(document["pause"] is not None)


def _maintenance(document: Document) -> Iterator[Sample]:
    for each in document["maintenance"]:
        yield (each["host"],), 1


def _parked(document: Document) -> Iterator[Sample]:
    for each in document["parked"]:
        yield (each["timetable"], each["host"]), 1


def _failures(document: Document) -> Iterator[Sample]:
    for each in (*document["parked"], *document["retrying"]):
        yield (each["timetable"], each["host"]), each["tries"]


def _frames(which: str) -> Callable[[Document], Iterator[Sample]]:
    def found(document: Document) -> Iterator[Sample]:
        for host in document["hosts"]:
            for card in host["cards"]:
                yield (host["name"], card["pciId"], card["model"]), MIB * card[which]

    return found


def _running(document: Document) -> Iterator[Sample]:
    for each in document["workers"]:
        yield (each["name"],), float(each["power"] == "poweredOn")


def _asleep(document: Document) -> Iterator[Sample]:
    for each in document["workers"]:
        if each["node"] is not None:
            purpose = each["shouldBeAwake"] is False and each["node"]["state"] == "asleep"
            yield (each["name"], each["node"]["name"]), float(purpose)


def _held(document: Document) -> Iterator[Sample]:
    for each in document["workers"]:
        if each["hold"] is not None:
            yield (each["name"],), 1


def _leaving(document: Document) -> Iterator[Sample]:
    for each in document["workers"]:
        record = each["node"] and each["node"]["record"]
        if record and record["state"] == LEAVING and (leaving_s := age_s(document, record["since"])) is not None:
            yield (each["name"],), leaving_s


def _missing(document: Document) -> Iterator[Sample]:
    yield (), len(document["missing"])


def _waiting(document: Document) -> Iterator[Sample]:
    yield (), len(document["waiting"])


def _out_of_step(document: Document) -> Iterator[Sample]:
    for kind, number in Counter(each["kind"] for each in document["outOfStep"]).items():
        yield (kind,), number


def _silent(document: Document) -> Iterator[Sample]:
    since = {each["server"]: each["since"] for each in document["stale"]}
    for server in SERVERS:
        yield (server,), (age_s(document, since[server]) or 0.0) if server in since else 0.0


def _heard(document: Document) -> Iterator[Sample]:
    stale = {each["server"] for each in document["stale"]}
    for server in SERVERS:
        yield (server,), float(server not in stale)


def _observed(document: Document) -> Iterator[Sample]:
    yield (), timestamp(document["observedAt"]) or 0.0


def _metric(
    name: str, labels: str, field: str, samples: Callable[[Document], Iterator[Sample]], help_text: str
) -> DocumentMetric:
    return DocumentMetric(
        name=f"vgpuctl_{name}", labels=tuple(labels.split()), field=field, samples=samples, help=help_text
    )


TIMETABLE, HOST, WORKER = "timetable", "host", "worker"
CARD = "host card model"
SHIFT = "timetable shift"
DOCUMENT_METRICS: tuple[DocumentMetric, ...] = (
    _metric("status_timestamp_seconds", "", "observedAt", _observed, "When the world was observed."),
    _metric("server_heard", "server", "stale[]", _heard, "1 if the server is heard, 0 if what is known of it is old."),
    _metric("server_silent_seconds", "server", "stale[].since", _silent, "How long the server has not been heard."),
    _metric("shift_due", SHIFT, "timetables[].due", _shifts("due"), "1 for the shift that should be in force."),
    _metric(
        "shift_current", SHIFT, "timetables[].current", _shifts("current"), "1 for the shift whose workers are awake."
    ),
    _metric(
        "shift_late_seconds",
        TIMETABLE,
        "timetables[].since",
        _late,
        "How long the shift that is due has not been in force; 0 if it is.",
    ),
    _metric(
        "shift_next_start_timestamp_seconds",
        SHIFT,
        "timetables[].nextStart",
        _next_start,
        "When the next shift begins.",
    ),
    _metric("override", SHIFT, "timetables[].override", _overrides, "1 for a shift that a person put in force."),
    _metric("paused", "", "pause", _paused, "1 while a person's pause is in force."),
    _metric("host_maintenance", HOST, "maintenance[]", _maintenance, "1 for a host held by vgpuctl maintenance."),
    _metric("host_parked", "timetable host", "parked[]", _parked, "1 for a host that is not tried again."),
    _metric(
        "host_failed_tries",
        "timetable host",
        "parked[].tries, retrying[].tries",
        _failures,
        "How often the switch to the shift that is due has failed on the host.",
    ),
    _metric("card_frame_bytes", CARD, "hosts[].cards[].frameMiB", _frames("frameMiB"), "The card's frame."),
    _metric(
        "card_frame_used_bytes", CARD, "hosts[].cards[].usedMiB", _frames("usedMiB"), "What running VMs take of it."
    ),
    _metric("worker_running", WORKER, "workers[].power", _running, "1 if the VM is powered on."),
    _metric(
        "worker_asleep_on_purpose",
        "worker node",
        "workers[].shouldBeAwake",
        _asleep,
        "1 if the node is down because its shift has not come. Silence alerts about such nodes.",
    ),
    _metric("worker_held", WORKER, "workers[].hold", _held, "1 for a worker that a person holds."),
    _metric(
        "worker_leaving_seconds",
        WORKER,
        "workers[].node.record.since",
        _leaving,
        "How long the worker has been cordoned and drained for a shift.",
    ),
    _metric("workers_missing", "", "missing[]", _missing, "Workers of profiles.yaml that vCenter does not have."),
    _metric("waiting_pods", "", "waiting[]", _waiting, "Pending pods that ask for one of our profiles."),
    _metric("out_of_step", "kind", "outOfStep[]", _out_of_step, "Things that are not as the files want them."),
)
