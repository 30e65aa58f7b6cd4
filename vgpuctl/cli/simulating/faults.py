"""vgpuctl sim fault …: calls that go wrong on purpose."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from vgpuctl.cli.common import console, print_json
from vgpuctl.cli.lazy import group
from vgpuctl.cli.options import Output, OutputOption
from vgpuctl.cli.simulating.access import DirOption, controls, duration_s, sim_explained
from vgpuctl.model.phrases import count

app = group(add_completion=False, help="Let calls go wrong on purpose.")
_NAMES = {"task-fails": "its task fails with", "hang": "hangs", "lose-reply": "is done, but its reply is lost"}
_NAMES |= {"task-hangs": "its task hangs at 95 %", "cut": "the connection is cut", "fail": "fails with"}
_NAMES |= {"end-sessions": "finds all sessions ended", "person": "finds that a person did", "down": "is down for"}


@app.command()
def add(
    call: Annotated[
        str, typer.Argument(help="A vCenter method, a verb and resource, or all calls of vcenter or kubernetes.")
    ],
    dir: DirOption,
    fail: Annotated[str | None, typer.Option(help="A vSphere fault, or an HTTP status for Kubernetes.")] = None,
    retry_after: Annotated[str | None, typer.Option(help="With such a status, asks to wait so long.")] = None,
    task_fails: Annotated[str | None, typer.Option(help="The call starts a task, which ends with this fault.")] = None,
    task_hangs: Annotated[bool, typer.Option("--task-hangs", help="Its task stays at 95 %.")] = False,
    hang: Annotated[str | None, typer.Option(help="It is carried out, but only after this time.")] = None,
    lose_reply: Annotated[bool, typer.Option("--lose-reply", help="Carried out; its reply is lost.")] = False,
    cut: Annotated[bool, typer.Option("--cut", help="The connection is cut, and nothing carried out.")] = False,
    end_sessions: Annotated[bool, typer.Option("--end-sessions", help="All sessions end just before it.")] = False,
    person: Annotated[str | None, typer.Option(help="Just before it a person does this (see sim set person).")] = None,
    down: Annotated[str | None, typer.Option(help="The whole server is gone for this time.")] = None,
    on: Annotated[str, typer.Option(help="Only calls on this object; * and ? are any.")] = "*",
    nth: Annotated[int | None, typer.Option(help="Only the n-th such call.", min=1)] = None,
    every: Annotated[int | None, typer.Option(help="Every n-th such call.", min=1)] = None,
    chance: Annotated[float | None, typer.Option(help="Each with this chance, from 0 to 1.")] = None,
    seed: Annotated[int, typer.Option(help="Which calls the chance meets.")] = 1,
    times: Annotated[int | None, typer.Option(help="At most so many of them.", min=1)] = None,
    lasts: Annotated[str | None, typer.Option("--for", help="Only for so long from now.")] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Let calls go wrong: each such call, or those that --nth, --every or --chance choose.

    Examples:

      vgpuctl sim fault add SuspendVM_Task --on worker-2 --task-fails NoDiskSpace
      vgpuctl sim fault add "POST pods/eviction" --fail 503 --chance 0.3 --seed 7
      vgpuctl sim fault add "PATCH nodes" --lose-reply --every 3
      vgpuctl sim fault add PowerOnVM_Task --person "power-on infra-1" --nth 1
      vgpuctl sim fault add vcenter --end-sessions --nth 5
      vgpuctl sim fault add vcenter --down 10s
      vgpuctl sim fault add kubernetes --fail 503 --for 10s
      vgpuctl sim fault add "PATCH nodes" --fail 429 --retry-after 5s --times 1
    """
    faults: dict[str, Any] = {"fail": fail, "task-fails": task_fails, "hang": hang, "person": person, "down": down}
    faults |= {"task-hangs": task_hangs, "lose-reply": lose_reply, "cut": cut, "end-sessions": end_sessions}
    how, value = _only_one(faults)
    rule: dict[str, Any] = {"on": on, "nth": nth, "every": every, "chance": chance}
    rule |= {"seed": seed, "times": times, "lasts": duration_s(lasts) if lasts else None}
    rule |= {"seconds": duration_s(value)} if how in ("hang", "down") else {"what": value if value is not True else ""}
    rule |= {"seconds": duration_s(retry_after)} if retry_after else {}
    with sim_explained():
        added = controls(dir).fault(call, how, **rule)
    if output is Output.JSON:
        print_json(added)
    else:
        console().print(f"Fault {added['id']}: {_sentence(added)}.")


def _only_one(faults: dict[str, Any]) -> tuple[str, Any]:
    """Return the one fault that the options name, and its value."""
    given = [(how, value) for how, value in faults.items() if value]
    if len(given) != 1:
        raise typer.BadParameter(f"say what happens to the call, by one of --{', --'.join(sorted(faults))}")
    return given[0]


@app.command("list")
def list_(dir: DirOption, output: OutputOption = Output.TABLE) -> None:
    """The faults in force, and how many calls each has met.

    Example:

      vgpuctl sim fault list
    """
    with sim_explained():
        found = controls(dir).faults()
    if output is Output.JSON:
        print_json({"faults": found})
        return
    for fault in found:
        met = f"met {fault['met']} of {count(fault['concerned'], 'call')}"
        console().print(f"{fault['id']:>3}  {_sentence(fault)}; {met}")
    if not found:
        console().print("No faults.")


@app.command()
def clear(
    dir: DirOption, ids: Annotated[list[str] | None, typer.Argument(help="Their numbers; all without one.")] = None
) -> None:
    """Take faults away. A task that hangs goes on, a server that was down comes back.

    Example:

      vgpuctl sim fault clear 2
    """
    with sim_explained():
        cleared = controls(dir).clear_faults(*(ids or ()))
    console().print(f"{count(len(cleared), 'fault')} cleared.")


def _sentence(fault: dict[str, Any]) -> str:
    called = fault["server"] if fault["method"] == "*" else fault["method"]
    words = [called] if fault["on"] == "*" else [called, "on", fault["on"]]
    words.append(_NAMES[fault["how"]])
    words += [fault["what"]] if fault["what"] else []
    words += ["and asks to wait"] if fault["seconds"] and fault["how"] == "fail" else []
    words += [f"{fault['seconds']:g} s"] if fault["seconds"] else []
    if "nth" in fault:
        words.append(f"(call {fault['nth']})")
    if "every" in fault:
        words.append(f"(every {fault['every']}. call)")
    if "chance" in fault:
        words.append(f"(with a chance of {fault['chance']:g})")
    words += [f"(at most {count(fault['times'], 'time')})"] if "times" in fault else []
    return " ".join(words)
