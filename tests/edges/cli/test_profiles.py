"""`vgpuctl profiles`: what a person sees, and how it ends."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from tests.support.lab import Lab
from tests.support.paths import ROOT
from vgpuctl.cli.showing.findings import findings_document
from vgpuctl.files.schema import schema_text
from vgpuctl.model.fleet import Fleet
from vgpuctl.model.profiles import Catalogue
from vgpuctl.reporting.profiles_check import Compared, Finding, Severity

Make = Callable[..., Lab]


def test_a_clean_estate_is_told_in_one_line(by_day: Lab) -> None:
    ran = by_day.vgpuctl("profiles", "check").ok()
    assert ran.out == "No problems in 2 profiles, 1 timetable, 5 workers, 1 host.\n"


def test_everything_that_does_not_fit_is_told_with_its_line_and_the_way_out(make_lab: Make) -> None:
    lab = make_lab("--instant", "--scenario", "difficult-vms")
    ran = lab.vgpuctl("profiles", "check")
    assert ran.code == 3
    assert "profiles.yaml:16: error: worker-1: cannot be suspended" in " ".join(ran.out.split())
    assert "worker-4: is managed by com.vmware.vcenter.wcp" in " ".join(ran.out.split())
    assert all(len(line) <= 80 for line in ran.out.splitlines() if str(lab.folder) not in line)
    document = json.loads(lab.vgpuctl("profiles", "check", "-o", "json").out)
    assert (document["kind"], document["errors"], document["warnings"]) == ("Check", 2, 0)
    assert {(found["kind"], found["line"], *found["workers"]) for found in document["findings"]} == {
        ("not-suspendable", 16, "worker-1"),
        ("managed", 16, "worker-4"),
    }
    assert lab.writes() == {}


def test_hosts_and_vms_that_are_not_ready_for_vgpus_are_told(make_lab: Make) -> None:
    lab = make_lab("--instant", "--scenario", "not-ready-for-vgpus")
    ran = lab.vgpuctl("profiles", "check", "-o", "json")
    found = {(each["severity"], each["kind"], *each["workers"]) for each in json.loads(ran.out)["findings"]}
    assert ran.code == 3
    assert found == {
        ("error", "memory-not-reserved", "worker-1"),
        ("warning", "no-efi", "worker-2"),
        ("warning", "unshared-card"),
    }
    refused = lab.vgpuctl("switch", "day", "--dry-run")
    assert refused.code == 3
    assert "worker-1 cannot wake: it does not reserve all its memory" in refused.err + refused.out
    lab.vgpuctl("provision", "--yes").ok()
    lab.vgpuctl("profiles", "check").ok()


def test_the_page_tells_each_field_of_the_document() -> None:
    page = (ROOT / "docs" / "reference" / "profiles-check.md").read_text()
    told = set(re.findall(r"^\| `([\w.\[\]]+)` \|", page.partition("## The document")[2], re.MULTILINE))
    finding = Finding(severity=Severity.ERROR, kind="k", what="w", hint="h")
    found = findings_document(Compared(fleet=Fleet(), catalogue=Catalogue({})), [finding])
    inner = {
        f"findings[].{key}{'[]' if isinstance(value, list) else ''}" for key, value in found["findings"][0].items()
    }
    assert told == {key for key in found if key != "findings"} | {"findings[]"} | inner


def test_warnings_alone_end_well(make_lab: Make) -> None:
    ran = make_lab("--instant", "--scenario", "two-cards-performance").vgpuctl("profiles", "check").ok()
    assert "warning: esx-1 spreads VMs over its 2 cards" in " ".join(ran.out.split())
    assert "1 warning in" in ran.out


def test_drs_is_asked_for_once(make_lab: Make, tmp_path: Path) -> None:
    scenario = tmp_path / "drs.yaml"
    scenario.write_text(
        "version: 1\ndrs: true\nhosts: [{name: 'esx-[1-2]', cards: [V100-16]}]\nprofiles: {small: grid_v100-4q}\n"
        "workers: [{name: 'worker-[1-4]', profile: small}]\nshifts: {day: small}\n"
    )
    lab = make_lab("--instant", "--scenario", str(scenario))
    lab.calls()
    found = json.loads(lab.vgpuctl("profiles", "check", "-o", "json").ok().out)["findings"]
    assert {(each["kind"], len(each["workers"])) for each in found} == {("drs", 4)}
    assert lab.calls()["vcenter"]["RetrievePropertiesEx"] == 1


def test_whom_drs_leaves_where_he_is_is_no_finding(make_lab: Make, tmp_path: Path) -> None:
    """An override, or a must-rule to one host; an override that lets DRS go on is none."""
    kinds = ("drs: disabled", "drs: manual", "must-run-on: esx-1", "drs: fully-automated", "drs: partially-automated")
    workers = "".join(f"  - {{name: w-{n}, profile: small, {kind}}}\n" for n, kind in enumerate(kinds, start=1))
    for word, placed in (("fully-automated", ["w-4", "w-5"]), ("manual", []), ("false", [])):
        scenario = tmp_path / f"{word}.yaml"
        scenario.write_text(
            f"version: 1\ndrs: {word}\nhosts: [{{name: 'esx-[1-2]', cards: [V100-16, V100-16]}}]\n"
            f"profiles: {{small: grid_v100-4q}}\nworkers:\n{workers}shifts: {{day: small}}\n"
        )
        lab = make_lab("--instant", "--scenario", str(scenario))
        found = json.loads(lab.vgpuctl("profiles", "check", "-o", "json").ok().out)["findings"]
        assert [each["workers"] for each in found if each["kind"] == "drs"] == ([placed] if placed else [])


def test_offline_asks_no_server(tmp_path: Path) -> None:
    (tmp_path / "p.yml").write_text("version: 1\nprofiles:\n  small: grid_v100-4q\nworkers:\n")
    lab = Lab(tmp_path, {"VGPUCTL_PROFILES": str(tmp_path / "p.yml"), "VGPUCTL_SCHEDULES": str(tmp_path)})
    ran = lab.vgpuctl("profiles", "check", "--offline").ok()
    assert "p.yml:3: warning: profile small: no entry of workers uses it." in " ".join(ran.out.split())
    (tmp_path / "p.yml").write_text("version: 2\nprofiles: 3\n")
    ran = lab.vgpuctl("profiles", "check", "--offline")
    assert ran.code == 2
    assert "line 1: version: must be 1" in ran.err
    assert "line 2: profiles: must be a mapping" in ran.err


def test_the_schema_is_printed_as_it_is(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    assert lab.vgpuctl("profiles", "schema").ok().out == schema_text("profiles")
    assert lab.vgpuctl("profiles", "schema", "--of", "timetable").ok().out == schema_text("timetable")
