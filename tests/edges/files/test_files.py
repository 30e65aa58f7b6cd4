"""The files that people write: what is accepted, and how every fault is told."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from hypothesis import given

from tests.support.documents import CHOICES, DOCUMENTS, PROFILES
from tests.support.files import read_catalogue, read_timetable
from tests.support.fleets import fleet, worker
from tests.support.paths import ROOT
from vgpuctl.basics.names import expand
from vgpuctl.files import read_files
from vgpuctl.model.errors import UsageError
from vgpuctl.model.profiles import Candidate
from vgpuctl.sim.files import profiles_text, timetable_text
from vgpuctl.sim.inventory import default_inventory

TWO_FRAMES = """\
whole: {vgpu: [grid_v100-4q, grid_v100-4q], frame: 5}
  x: {vgpu: grid_v100-4q, frame: 6}"""


def catalogue(tmp_path: Path, text: str = PROFILES) -> Path:
    path = tmp_path / "profiles.yaml"
    path.write_text(text)
    return path


def test_the_documented_examples_fit_the_simulators_inventory() -> None:
    assert (ROOT / "profiles.yaml").read_text() == profiles_text(default_inventory())
    assert (ROOT / "schedules" / "day-night.yaml").read_text() == timetable_text(default_inventory())
    files = read_files(ROOT / "profiles.yaml", ROOT / "schedules")
    assert files.timetables["day-night"].shifts["night"].profiles == {"v100-16q-16GB"}


@pytest.mark.parametrize(("hosts", "cards"), [(1, 1), (2, 3), (12, 4)])
def test_the_simulators_files_fit_their_inventory(tmp_path: Path, hosts: int, cards: int) -> None:
    inventory = default_inventory(hosts, cards)
    found = read_catalogue(catalogue(tmp_path, profiles_text(inventory)))
    for profile in ("v100-4q-4GB", "v100-16q-16GB"):
        named = tuple(name for name, carried in found.named.items() if carried == profile)
        assert named == inventory.workers_of(profile)


@pytest.mark.parametrize(
    ("scale", "told"),
    [
        ("a/deplyment/b", "a/deplyment/b: workloads of kind deplyment cannot be scaled; did you mean deployment?"),
        ("gateway", "'gateway' is not namespace/kind/name, such as inference/deployment/gateway"),
        ("{namespace: a}", "a mapping here needs a selector, such as vgpu-shift=day"),
        ("{selector: 'a=='}", ""),
        ("{selector: 'a=(b'}", "shifts.night.scale.selector: The selector 'a=(b' cannot be understood"),
        ("[3]", "must be namespace/kind/name, or a mapping with a selector"),
    ],
)
def test_what_a_shift_scales_is_read_with_care(tmp_path: Path, scale: str, told: str) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(f"version: 1\ntimezone: UTC\nshifts: {{night: {{starts: 0 20 * * *, scale: {scale}}}}}")
    known = read_catalogue(catalogue(tmp_path))
    if told:
        with pytest.raises(UsageError) as caught:
            read_timetable(path, known)
        assert told in caught.value.message
    else:
        assert read_timetable(path, known).scales


def test_a_plain_vgpu_type_stands_for_its_profile(tmp_path: Path) -> None:
    found = read_catalogue(catalogue(tmp_path))
    assert found.named["worker-5"] == "whole"
    assert found.label == "vgpu.type"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("version: 1", "version: 7", "version: must be 1"),
        ("worker-5: grid_v100-16q", "worker-5: smal", "there is no profile smal; did you mean small?"),
        ("worker-5:", "worker-4:", "worker-4 is listed twice"),
        ("worker-[1-4]", "worker-[4-1]", "is not a VM name"),
        ("worker-[1-4]", "worker-[1-999999999]", "is not a VM name"),
        ("worker-[1-4]", "' worker-1'", "is not a VM name"),
        ("  small:", "  -small-:", "cannot be a label's value"),
        ("whole: grid_v100-16q", "whole: {vgpu: 3}", "must be a string"),
        ("whole: grid_v100-16q", "whole: grid_v100-4q", "has the same vGPUs as profile small"),
        (
            "whole: grid_v100-16q",
            "whole: {vgpu: grid_v100-16q, frame: 16MB}",
            "whole.frame: '16MB' is not a number of GB",
        ),
        ("whole: grid_v100-16q", "whole: {vgpu: grid_v100-16q, class: c}", "whole.class: 'c' is not one of C, Q, A, B"),
        (
            "whole: grid_v100-16q",
            "whole: {vgpu: [a-16q, b-16q], frame: 16}",
            "but this profile has several; write a profile for each",
        ),
        ("whole: grid_v100-16q", TWO_FRAMES, "x: gives its vGPU type another frame or class than profile whole does"),
        ("workers:", "worker:", "worker: is not a known key; did you mean workers?"),
        ("version: 1", "version: 1\nlabel: 'a b'", "is not a label key"),
    ],
)
def test_every_fault_has_words(tmp_path: Path, old: str, new: str, told: str) -> None:
    with pytest.raises(UsageError) as error:
        read_catalogue(catalogue(tmp_path, PROFILES.replace(old, new)))
    assert told in error.value.message
    assert "profiles.yaml" in error.value.message


@pytest.mark.parametrize(
    ("vm", "profiles"),
    [
        (Candidate("gpu-1"), ["small"]),
        (Candidate("gpu-7"), ["whole"]),  # a name written out decides against globs
        (Candidate("any", folder="/dc-1/vm/gpu"), ["small"]),
        (Candidate("any", folder="/dc-1/vm/gpu/below"), ["small"]),
        (Candidate("any", folder="/dc-1/vm/gpus"), []),
        (Candidate("big-1", cluster="night-a"), ["whole"]),
        (Candidate("big-1", cluster="day"), []),
        (Candidate("any", cluster="night-a"), []),
        (Candidate("any", folder="/dc-2/vm", labels={"pool": "slices"}), ["small"]),
        (Candidate("any", folder="/dc-2/vm", labels={"pool": "other"}), []),
        (Candidate("any", folder="/dc-3/vm", labels={"pool": "slices"}), []),
        (Candidate("any", labels={"pool": "slices"}), []),
        (Candidate("big-2", cluster="night-a", folder="/dc-1/vm/gpu"), ["small", "whole"]),
        (Candidate("plain"), ["none"]),
        (Candidate("GPU-1"), []),
    ],
)
def test_who_is_chosen_by_what(tmp_path: Path, vm: Candidate, profiles: list[str]) -> None:
    found = read_catalogue(catalogue(tmp_path, CHOICES))
    assert sorted(choice.profile for choice in found.chosen(vm)) == profiles


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("names: gpu-7", "nmes: gpu-7", "line 7: workers[1].nmes: is not a known key; did you mean names?"),
        (
            "profile: whole, names",
            "profile: whle, names",
            "line 7: workers[1].profile: there is no profile whle; did you mean",
        ),
        ("nodes: {pool: slices}", "nodes: {}", "line 10: workers[4].nodes: is empty"),
        ("nodes: {pool: slices}", "nodes:", "line 10: workers[4].nodes: is empty"),
        (
            ", folder: /dc-2",
            "",
            "line 10: workers[4]: chooses by node labels alone, but a node writes its own labels",
        ),
        (", folder: /dc-2", "", "such as folder: /dc-1/vm/gpu"),
        ("folder: /dc-2", "folder: '/*/*'", "line 10: workers[4]: chooses by node labels alone"),
        ("folder: /dc-2", "cluster: '*'", "line 10: workers[4]: chooses by node labels alone"),
        ("folder: /dc-2", "names: [gpu-1, '?*']", "line 10: workers[4]: chooses by node labels alone"),
        ("names: gpu-7", "names: []", "line 7: workers[1].names: is empty"),
        ("profile: none", "profile: 3", "line 11: workers[5].profile: must be the name of a profile"),
        ("version: 1", "version: true", "line 1: version: must be 1"),
        ("names: plain", "folder: 3", "line 11: workers[5].folder: must be a string"),
        (', names: ["gpu-*"]', "", "line 6: workers[0]: chooses no VM: add one of names, folder, cluster, nodes"),
        ("pool: slices", "pool: 3", "line 10: workers[4].nodes.pool: must be a node label and a string as its value"),
        ("  whole: grid", "  small: grid", "line 4: profiles.small: is written twice"),
        ("  whole: grid", "  none: grid", "line 4: profiles.none: is reserved: it means no vGPU"),
    ],
)
def test_faults_are_told_with_their_lines(tmp_path: Path, old: str, new: str, told: str) -> None:
    with pytest.raises(UsageError) as error:
        read_catalogue(catalogue(tmp_path, CHOICES.replace(old, new, 1)))
    assert told in error.value.message


def test_all_faults_are_told_at_once_in_their_order(tmp_path: Path) -> None:
    text = CHOICES.replace("version: 1", "version: 2").replace("profile: small", "profile: smll")
    with pytest.raises(UsageError) as error:
        read_catalogue(catalogue(tmp_path, text))
    told = [int(line.split()[1].rstrip(":")) for line in error.value.message.splitlines()[1:]]
    assert told == [1, 6, 8, 10]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("version: 1\ntimezone: Europe/Berln\nshifts: {day: {starts: '0 8 * * *'}}", "did you mean Europe/Berlin?"),
        ("version: 1\ntimezone: UTC\nshifts: {day: {starts: '0 8 * *'}}", "it needs five fields"),
        ("version: 1\ntimezone: UTC\nshifts: {day: {starts: '0 25 * * *'}}", "is not a cron line"),
        ("version: 1\ntimezone: UTC\nshifts: {day: {}}", "needs a start, such as"),
        (
            "version: 1\ntimezone: UTC\nshifts: {day: {starts: '0 8 * * *', workers: worker-9}}",
            "there is no worker worker-9",
        ),
        ("version: 1\ntimezone: UTC\nshifts: {}", "has no shifts"),
        (
            "version: 1\ntimezone: []\nshifts: {day: {starts: '0 8 * * *'}}",
            "timezone: must be the name of a time zone, such as",
        ),
        (
            "version: 1\ntimezone: UTC\nshifts: {a: {starts: '0 8 * * *'}}\ndrain: {timeout: soon}",
            "is not a duration such as",
        ),
        ("version: 1\ntimezone: UTC\nshifts: {a: {starts: '0 8 * * *'}}\ndrain: {force: 2}", "must be true or false"),
        (
            f"version: 1\ntimezone: UTC\nshifts: {{a: {{starts: 0 8 * * *}}}}\ndrain: {{grace-period: '{'9' * 400}'}}",
            "is not a duration such as",
        ),
        (
            f"version: 1\ntimezone: UTC\nshifts: {{{'a' * 254}: {{starts: '0 8 * * *'}}}}",
            "line 3: shifts: the name of a shift is longer than 253 characters",
        ),
        ("- 1", "must be a mapping, not a list"),
        ("a: [", "is not YAML"),
    ],
)
def test_every_fault_of_a_timetable_has_words(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "day-night.yaml"
    path.write_text(text)
    with pytest.raises(UsageError) as error:
        read_timetable(path, read_catalogue(catalogue(tmp_path)))
    assert told in error.value.message


def test_a_worker_obeys_one_timetable(tmp_path: Path) -> None:
    schedules = tmp_path / "schedules"
    schedules.mkdir()
    for name in ("one", "two"):
        text = "version: 1\ntimezone: UTC\nshifts: {day: {starts: '0 8 * * *', profiles: small}}\n"
        (schedules / f"{name}.yaml").write_text(text)
    with pytest.raises(
        UsageError, match="line 3: shifts: worker-1 is in two timetables: one and two, and so are 3 more"
    ):
        read_files(catalogue(tmp_path), schedules)


def test_workers_that_no_name_tells_are_found_in_two_timetables_when_they_are_seen(tmp_path: Path) -> None:
    (tmp_path / "schedules").mkdir()
    for name, who in (("one", "profiles: small"), ("two", "workers: gpu-1")):
        text = f"version: 1\ntimezone: UTC\nshifts: {{day: {{starts: '0 8 * * *', {who}}}}}\n"
        (tmp_path / "schedules" / f"{name}.yaml").write_text(text)
    files = read_files(catalogue(tmp_path, CHOICES), tmp_path / "schedules")
    files.check_unique(fleet(worker("gpu-2", profile="small")))
    with pytest.raises(UsageError, match="gpu-1 is in two timetables: one and two"):
        files.check_unique(fleet(worker("gpu-1", profile="small")))


def test_the_faults_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    """A profile that is faulty itself is no fault of those who name it."""
    schedules = tmp_path / "schedules"
    schedules.mkdir()
    for name, shift in (("one", "profiles: [small, smal]"), ("two", "workers: worker-9")):
        text = f"version: 1\ntimezone: UTC\nshifts:\n  day:\n    starts: 0 8 * * *\n    {shift}\n"
        (schedules / f"{name}.yaml").write_text(text)
    with pytest.raises(UsageError) as error:
        read_files(catalogue(tmp_path, PROFILES.replace("{vgpu: grid_v100-4q}", "{vgpu: 4}")), schedules)
    told = [line.strip().partition(" ")[2] for line in error.value.message.splitlines() if line.startswith("  ")]
    assert [line.split(": ")[1] for line in told] == [
        "profiles.small.vgpu",
        "profiles.small.vgpu",
        "shifts.day.profiles",
        "shifts.day.workers",
    ]


def test_a_file_that_is_no_yaml_hides_no_other_fault(tmp_path: Path) -> None:
    (tmp_path / "schedules").mkdir()
    (tmp_path / "schedules" / "broken.yaml").write_text("version: 1\n  x: [")
    with pytest.raises(UsageError) as error:
        read_files(catalogue(tmp_path, PROFILES.replace("version: 1", "version: 2")), tmp_path / "schedules")
    assert "line 1: version: must be 1" in error.value.message
    assert "broken.yaml cannot be used:\n  line 2: is not YAML (column 4): mapping values" in error.value.message


def test_of_profiles_that_cannot_be_read_no_timetable_is_blamed(tmp_path: Path) -> None:
    (tmp_path / "schedules").mkdir()
    (tmp_path / "schedules" / "day.yaml").write_text(
        "version: 1\ntimezone: UTC\nshifts: {day: {starts: '0 8 * * *', profiles: small}}"
    )
    with pytest.raises(UsageError) as error:
        read_files(catalogue(tmp_path, "a: ["), tmp_path / "schedules")
    assert "is not YAML" in error.value.message
    assert "no profile" not in error.value.message


def test_the_same_fault_is_told_once(tmp_path: Path) -> None:
    path = tmp_path / "day-night.yaml"
    path.write_text("version: 1\ntimezone: UTC\nmode: swp\nshifts: {day: {starts: '0 8 * * *'}}")
    with pytest.raises(UsageError) as error:
        read_timetable(path, read_catalogue(catalogue(tmp_path)))
    assert error.value.message.count("mode: must be swap or replace") == 1


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot be read: Is a directory\.$"):
        read_files(tmp_path, tmp_path / "schedules")


def test_ranges_keep_their_zeros() -> None:
    assert expand("gpu-[08-11]") == ["gpu-08", "gpu-09", "gpu-10", "gpu-11"]
    assert expand("r[1-2]w[1-2]") == ["r1w1", "r1w2", "r2w1", "r2w2"]


@given(DOCUMENTS)
def test_no_document_whatsoever_ends_in_a_traceback(tmp_path_factory: pytest.TempPathFactory, document: object) -> None:
    path = tmp_path_factory.mktemp("any") / "profiles.yaml"
    for content in (document, {"version": 1, "profiles": document, "workers": document, "label": document}):
        path.write_text(yaml.safe_dump(content))
        with suppress(UsageError):
            read_catalogue(path)


@given(DOCUMENTS)
def test_no_timetable_whatsoever_ends_in_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, document: object
) -> None:
    folder = tmp_path_factory.mktemp("any")
    path, known = folder / "day-night.yaml", read_catalogue(catalogue(folder))
    keys = ("timezone", "shifts", "drain")
    for content in (document, {"version": 1, **dict.fromkeys(keys, document)}, {"shifts": {"day": document}}):
        path.write_text(yaml.safe_dump(content))
        with suppress(UsageError):
            read_timetable(path, known)
