"""The page on settings tells each of them, in each of its spellings; the flags are those of the command line."""

from __future__ import annotations

import re

from tests.support.paths import ROOT
from vgpuctl.cli.access import ACCESS
from vgpuctl.settings.environment import FAMILIES
from vgpuctl.settings.values import LISTENING, NAMES, SIZES, TIMES, variable

PAGE = (ROOT / "docs" / "reference" / "settings.md").read_text()
ROWS = [set(re.findall(r"`([^`]+)`", line)) for line in PAGE.splitlines() if line.startswith("| ")]


def test_each_setting_has_its_flag_variable_and_key_in_one_row() -> None:
    for name in (*NAMES, *LISTENING):
        assert any({f"--{name}", variable(name), name} <= row for row in ROWS), name
    for name in (*TIMES, *SIZES):
        assert any({variable(name), name} <= row for row in ROWS), name
    assert any({"VGPUCTL_PASSWORD", "GOVC_PASSWORD"} <= row for row in ROWS)


def test_each_flag_is_a_setting() -> None:
    assert {name.replace("_", "-") for name in ACCESS} == {*NAMES, "config"}


def test_each_variable_of_other_tools_stands_in_the_row_of_its_setting() -> None:
    told = {variable for row in ROWS for variable in row}
    for names in FAMILIES.values():
        assert {each for variables in names.values() for each in variables} <= told
