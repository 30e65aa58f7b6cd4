"""The process's own output: whatever it is connected to, no traceback, and an exit code that is true.

The file descriptors of a real process are what is tested, so some of these start one.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.lab import BIN
from vgpuctl.cli import output
from vgpuctl.cli.output import GuardedOutput

VGPUCTL = str(BIN / "vgpuctl")
WITHIN_S = 60
COMMANDS = [("--version",), ("--help",), ("switch", "--help"), ("profiles", "schema")]


def run(words: tuple[str, ...], **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([VGPUCTL, *words], timeout=WITHIN_S, text=True, check=False, **more)  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_full_disk_is_said_and_ends_with_1(words: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        done = run(words, stdout=full, stderr=subprocess.PIPE)
    assert done.stderr == "Error: The output could not be written: No space left on device.\n"
    assert done.returncode == 1


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_reader_that_has_seen_enough_is_told_nothing(words: tuple[str, ...]) -> None:
    read, write = os.pipe()
    os.close(read)
    done = run(words, stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert done.stderr == ""


def test_closed_streams_are_no_error() -> None:
    done = subprocess.run(["sh", "-c", f"{VGPUCTL} --help >&- 2>&-"], timeout=WITHIN_S, check=False)
    assert done.returncode == 0


def test_what_an_encoding_cannot_say_is_replaced() -> None:
    script = "from vgpuctl.cli import output; output.guard(); print('✓ ä')"
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, timeout=WITHIN_S, check=True)
    assert done.stdout == b"? ?\n"
    assert done.stderr == b""


def guarded_full(*, mutes: bool) -> GuardedOutput:
    return GuardedOutput(Path("/dev/full").open("w", encoding="utf-8"), mutes=mutes)


def test_output_that_mutes_takes_everything_after_a_failure_and_remembers_why() -> None:
    some = guarded_full(mutes=True)
    for _ in range(3):
        some.write("a line\n")
        some.flush()
    assert some.failure is not None
    assert some.failure.strerror == "No space left on device"
    some.close()


def test_output_that_does_not_mute_raises_once_and_keeps_nothing_back_for_the_end() -> None:
    some = guarded_full(mutes=False)
    some.write("a line\n")
    with pytest.raises(OSError, match="No space left"):
        some.flush()
    some.close()


def test_inside_muting_nothing_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    some = guarded_full(mutes=False)
    monkeypatch.setattr(sys, "stdout", some)
    with output.muting():
        print("a line", flush=True)
    assert output.complaint() == "The output could not be written: No space left on device."
    assert not some.mutes
    some.close()


def test_an_unguarded_stream_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    with output.muting():
        print("a line")
    assert output.failure() is None
    assert output.complaint() == ""
