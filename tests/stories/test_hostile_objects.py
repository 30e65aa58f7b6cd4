"""What anybody who may write into Kubernetes leaves there ends no command, and is named."""

from __future__ import annotations

from tests.support.lab import Lab


def test_numbers_without_end_and_depths_without_bottom_are_named_and_end_nothing(day: Lab) -> None:
    day.vgpuctl("switch", "night", "--yes").ok()
    day.vgpuctl("switch", "day", "--yes").ok()
    deep, endless = day.folder / "deep", day.folder / "endless"
    deep.write_text("[" * 300_000)
    kept = day.json("kubectl", "get", "configmap", "-n", "vgpuctl", "vgpuctl-history-1")["data"]["entry.json"]
    endless.write_text(kept.replace('"seconds": ', '"seconds": 1e308, "was": '))
    for number, path in ((7, deep), (8, endless)):
        name = f"vgpuctl-history-{number}"
        day.kubectl("create", "configmap", name, "-n", "vgpuctl", f"--from-file=entry.json={path}").ok()
        day.kubectl("label", "configmap", name, "-n", "vgpuctl", "vgpuctl.io/kind=history").ok()
    day.kubectl("delete", "configmap", "vgpuctl", "-n", "vgpuctl", "--ignore-not-found").ok()
    day.kubectl("create", "configmap", "vgpuctl", "-n", "vgpuctl", f"--from-file=day-night.esx-1={deep}").ok()
    day.kubectl("create", "deployment", "anybodys", "--image=x", "--replicas=0").ok()
    day.kubectl("annotate", "deployment", "anybodys", f"vgpuctl.io/replicas-before={'9' * 5000}").ok()
    timetable = day.folder / "schedules" / "day-night.yaml"
    text = timetable.read_text()
    timetable.write_text(text.replace("  night:\n", "  night:\n    scale: default/deployment/gateway\n"))
    assert text != timetable.read_text()

    shown = day.vgpuctl("status").ok().out
    told = "vgpuctl/vgpuctl day-night.esx-1: this departure cannot be read and is left out: it is nested deeper"
    assert told in shown
    assert "default/deployment/anybodys: bears a mark that cannot be read: vgpuctl.io/replicas-before is no" in shown

    listed = day.vgpuctl("history").ok()
    assert [line.split()[0] for line in listed.out.splitlines()] == ["ID", "2", "1"]
    told = "2 ConfigMaps of the history cannot be read, and are left out: vgpuctl-history-7 vgpuctl-history-8"
    assert listed.err == f"{told} (the first: entry.json is nested deeper than 16).\n"
    asked = day.vgpuctl("history", "show", "8")
    assert (asked.code, asked.err.splitlines()[0]) == (
        2,
        "Error: Switch 8 cannot be read: seconds is not between 0 and 315360000 seconds.",
    )

    assert "4 workers go to sleep" in day.vgpuctl("switch", "night", "--dry-run").ok().out
    day.vgpuctl("switch", "night", "--yes").ok()
    assert "cannot be read" in (after := day.vgpuctl("status").ok().out)
    assert "vgpuctl/vgpuctl" not in after, "the departure of the same host was written over it"
