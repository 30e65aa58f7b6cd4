"""No file that a person names takes more memory or time than it is worth: each bound is a fault with its line."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.support.bombs import BOMBS
from tests.support.files import read_catalogue
from vgpuctl.basics.durations import parse_duration
from vgpuctl.files import opening, read_and_collect, read_files
from vgpuctl.files.bounded_yaml import load
from vgpuctl.files.opening import MAX_BYTES, SilentError, read_bounded
from vgpuctl.files.reader import FAULTS_SHOWN, FileReader
from vgpuctl.model.errors import UsageError
from vgpuctl.settings.file import settings_file
from vgpuctl.sim.inventory import Durations
from vgpuctl.sim.scenarios.reader import BadScenario
from vgpuctl.sim.scenarios.scenario import read_scenario

SMALL = "version: 1\nprofiles: {small: grid_v100-4q}\n"
DAY = "version: 1\ntimezone: UTC\nshifts:\n  day: {starts: 0 8 * * *, profiles: small}\n"


def refused(tmp_path: Path, profiles: str, **timetables: str) -> str:
    (tmp_path / "profiles.yaml").write_text(profiles)
    (tmp_path / "schedules").mkdir(exist_ok=True)
    for name, text in timetables.items():
        (tmp_path / "schedules" / f"{name}.yaml").write_text(text)
    with pytest.raises(UsageError) as caught:
        read_files(tmp_path / "profiles.yaml", tmp_path / "schedules")
    return caught.value.message.replace(f"{tmp_path}/", "")


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_with_its_line(name: str, tmp_path: Path) -> None:
    text, line, told = BOMBS[name]
    assert f"profiles.yaml cannot be used:\n  line {line}: {told}" in refused(tmp_path, text)
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(UsageError, match=f"line {line}: "):
        settings_file(str(tmp_path / "config.yaml"), {})


LIMITED = """\
import resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
from tests.support.files import read_catalogue
from vgpuctl.model.errors import UsageError
for path in sorted(Path(sys.argv[1]).iterdir()):
    try:
        read_catalogue(path)
        print("taken:", path.name)
    except UsageError:
        pass
print("done")
"""


def test_all_bombs_together_fit_into_a_small_process(tmp_path: Path) -> None:
    """A GiB of address space and a minute of processor for all of them: any one alone took more, or never ended."""
    for number, (text, _, _) in enumerate(BOMBS.values()):
        (tmp_path / f"{number}.yaml").write_text(text)
    words = [sys.executable, "-c", LIMITED, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr


@pytest.mark.parametrize("name", BOMBS)
def test_a_scenario_that_is_a_bomb_is_refused_with_its_line(name: str, tmp_path: Path) -> None:
    (tmp_path / "scenario.yaml").write_text(BOMBS[name][0])
    with pytest.raises(BadScenario, match=r"is no YAML: line [0-9]+, column [0-9]+: "):
        read_scenario(tmp_path / "scenario.yaml", Durations())


def test_the_names_of_a_scenario_are_bounded_in_all(tmp_path: Path) -> None:
    workers = "".join(f"  - {{name: 'w{n}-[1-19999]'}}\n" for n in range(6))
    (tmp_path / "scenario.yaml").write_text(f"version: 1\nothers:\n{workers}")
    with pytest.raises(BadScenario, match=r"others\[5\].name: is more than 100000 names in all, or 20000 names"):
        read_scenario(tmp_path / "scenario.yaml", Durations())


def test_ranges_of_all_files_together_are_bounded(tmp_path: Path) -> None:
    lines = [f"  w{n}-[1-99999]: small" for n in range(50)]
    told = refused(tmp_path, SMALL + "workers:\n" + "\n".join(lines))
    assert "line 6: workers.w2-[1-99999]: 'w2-[1-99999]' and the patterns before it name more than 200000 VMs" in told
    assert len(told.splitlines()) == 49
    half = SMALL + "workers:\n  w-[1-99999]: small\n"
    more = "version: 1\ntimezone: UTC\nshifts: {{{0}: {{starts: 0 8 * * *, workers: 'w-[1-99999]'}}}}\n"
    told = refused(tmp_path, half, one=more.format("a"), two=more.format("b"))
    assert "two.yaml cannot be used:\n  line 3: shifts.b.workers: 'w-[1-99999]' and the patterns before it" in told


def test_globs_are_bounded(tmp_path: Path) -> None:
    told = refused(tmp_path, SMALL + "workers:\n" + "\n".join(f"  w{n}-*: small" for n in range(300)))
    assert "line 260: workers.w256-*: 'w256-*' is one glob too many: at most 256 are allowed" in told


@pytest.mark.parametrize(
    ("profiles", "timetable", "told"),
    [
        (
            "profiles: {" + ", ".join(f"p{n}: t{n}" for n in range(1001)) + "}",
            DAY,
            "profiles: has more than 1000 entries",
        ),
        (
            "",
            DAY + "".join(f"  s{n}: {{starts: 0 8 * * *}}\n" for n in range(100)),
            "shifts: has more than 100 entries",
        ),
        ("", DAY.replace("0 8 * * *", str(["0 8 * * *"] * 101)), "shifts.day.starts: has more than 100 entries"),
        (
            "",
            DAY.replace("profiles: small", f"scale: {['a/deploy/b'] * 1001}"),
            "shifts.day.scale: has more than 1000 entries",
        ),
        (
            "",
            DAY + "drain: {namespaces: {" + ", ".join(f"n{n}-*: {{}}" for n in range(101)) + "}}",
            "drain.namespaces: has more than 100 entries",
        ),
        (
            "",
            DAY + "drain: {namespaces: {" + ", ".join(f"n{n}-*: {{}}" for n in range(31)) + "}}",
            "drain.namespaces: has more than 30 globs",
        ),
    ],
    ids=["profiles", "shifts", "starts", "scale", "namespaces", "globs"],
)
def test_lists_that_nobody_writes_by_hand_are_bounded(tmp_path: Path, profiles: str, timetable: str, told: str) -> None:
    assert told in refused(tmp_path, f"version: 1\n{profiles}" if profiles else SMALL, day=timetable)


def test_so_are_timetables(tmp_path: Path) -> None:
    assert "has more than 50 timetables" in refused(tmp_path, SMALL, **{f"t{n}": DAY for n in range(51)})


def test_faults_are_counted_where_they_are_too_many_to_read(tmp_path: Path) -> None:
    """And no suggestion is looked for each: 20,000 words against 20,000 others would take hours."""
    told = refused(tmp_path, SMALL + "workers:\n" + "\n".join(f"  w{n}: smll{n}" for n in range(15_000)))
    assert told.count("did you mean small?") <= 20
    assert len(told.splitlines()) == FAULTS_SHOWN + 2
    assert told.endswith("more faults")
    unknown = DAY.replace("profiles: small", "workers: 'x-[1-99999]'")
    told = refused(tmp_path, SMALL + "workers: {'w-[1-1000]': small}", day=unknown)
    assert len(told.splitlines()) == FAULTS_SHOWN + 1
    assert "no worker x-1" in told


def test_what_is_quoted_is_cut(tmp_path: Path) -> None:
    told = refused(tmp_path, SMALL + "workers:\n" + f"  a: {'n' * 4000}\n")
    assert max(map(len, told.splitlines())) < 600


def test_merge_keys_and_aliases_that_people_write_are_read_as_ever() -> None:
    found = load("base: &base {a: 1, b: 2}\nmine:\n  <<: *base\n  b: 3\nboth: [*base, *base]\n")
    assert found.content["mine"] == {"a": 1, "b": 3}
    assert found.content["both"] == [{"a": 1, "b": 2}] * 2
    assert (found.duplicates, found.line("mine.b"), found.line("mine.a")) == ([], 4, 2)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom"])
def test_a_device_without_an_end_is_read_up_to_the_bound(device: str) -> None:
    with pytest.raises(UsageError, match=f"line [0-9]+: is larger than {MAX_BYTES} bytes"):
        read_catalogue(Path(device))


def test_settings_are_read_from_a_regular_file_alone() -> None:
    """They are read several times in one command, and a pipe only once."""
    with pytest.raises(UsageError, match=r"^/dev/zero is not a regular file\.$"):
        settings_file("/dev/zero", {})


def test_a_device_with_nothing_is_empty() -> None:
    assert read_bounded(Path("/dev/null")) == b""


def test_a_pipe_that_no_process_writes_into_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "PATIENCE_S", 0.05)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SilentError):
        read_bounded(tmp_path / "pipe")
    with pytest.raises(UsageError, match=r"pipe cannot be read: no process has written into it for 0 s\.$"):
        read_catalogue(tmp_path / "pipe")


def test_a_pipe_with_a_process_behind_it_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with `--profiles <(some slow command)`."""
    monkeypatch.setattr(opening, "PATIENCE_S", 0.05)
    reads, writes = os.pipe()
    begun = threading.Event()
    waited = opening._wait

    def wait(handle: int, deadline_s: float | None) -> bool:
        begun.set()
        return waited(handle, deadline_s)

    def write() -> None:
        assert begun.wait(10)
        threading.Event().wait(0.1)
        for part in (SMALL[:9], SMALL[9:]):
            os.write(writes, part.encode())
        os.close(writes)

    monkeypatch.setattr(opening, "_wait", wait)
    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert read_bounded(Path(f"/dev/fd/{reads}")) == SMALL.encode()
    finally:
        writer.join()
        os.close(reads)


def test_a_pipe_that_was_closed_without_a_word_is_empty(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reads = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    os.close(os.open(tmp_path / "pipe", os.O_WRONLY))
    try:
        assert opening._read(reads, MAX_BYTES) == b""
    finally:
        os.close(reads)


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_the_standard_input_is_read(name: str) -> None:
    code = (
        f"from pathlib import Path; from vgpuctl.files.opening import read_bounded; print(read_bounded(Path({name!r})))"
    )
    done = subprocess.run([sys.executable, "-c", code], input="a: 1\n", capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("b'a: 1\\n'\n", "")


def test_files_that_kubernetes_mounts_are_symlinks_to_symlinks(tmp_path: Path) -> None:
    (tmp_path / "..2026_11").mkdir()
    (tmp_path / "..2026_11" / "profiles.yaml").write_text(SMALL)
    (tmp_path / "..data").symlink_to("..2026_11")
    (tmp_path / "profiles.yaml").symlink_to("..data/profiles.yaml")
    assert "small" in read_catalogue(tmp_path / "profiles.yaml").profiles


def test_what_is_exactly_as_large_as_allowed_is_read(tmp_path: Path) -> None:
    path = tmp_path / "profiles.yaml"
    path.write_text(SMALL + "#" * (MAX_BYTES - len(SMALL)))
    assert "small" in read_catalogue(path).profiles
    path.write_text(SMALL + "#" * (MAX_BYTES - len(SMALL) + 1))
    assert "line 3: is larger than" in refused(tmp_path, path.read_text())


def test_what_is_no_text_has_a_line_as_well(tmp_path: Path) -> None:
    (tmp_path / "profiles.yaml").write_bytes(b"version: 1\n\xff")
    readers, _ = read_and_collect(tmp_path / "profiles.yaml", tmp_path / "none")
    assert readers[0].faults == [(2, "is not UTF-8 text")]


def test_a_duration_has_an_end() -> None:
    assert parse_duration("9" * 9 + "h") == 999999999 * 3600
    assert parse_duration("9" * 400) is None


def test_a_reading_by_itself_has_room() -> None:
    reader = FileReader(Path("profiles.yaml"))
    assert len(reader.read_names(("w-[1-1000]",), "workers").plain) == 1000
