"""vgpuctl sim fault …: calls that go wrong on purpose."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from vgpuctl.basics.phrases import count
from vgpuctl.cli.common import console, print_json
from vgpuctl.cli.lazy import group
from vgpuctl.cli.options import Output, OutputOption
from vgpuctl.cli.simulating.access import DirOption, controls, duration_s, sim_explained
from vgpuctl.sim.faults import How

app = group(add_completion=False, help="Make calls to the simulators fail on purpose.")
#: What happens to a call, by the word that asks for it.
_NAMES = {
    "fail": "it fails with",
    "task-fails": "its task fails with",
    "task-hangs": "its task hangs at 95 %",
    "hang": "it hangs",
    "lose-reply": "it is done, but its reply is lost",
    "cut": "the connection is cut",
    "end-sessions": "it finds all sessions ended",
    "person": "it finds that a person did",
    "down": "it is down for",
}

CallArgument = Annotated[
    str, typer.Argument(help="A vCenter method, a verb with a resource, or all calls: vcenter or kubernetes.")
]
FailOption = Annotated[str | None, typer.Option(help="Answer with this vSphere fault, or HTTP status for Kubernetes.")]
RetryAfterOption = Annotated[str | None, typer.Option(help="With --fail: ask the client to wait this long.")]
TaskFailsOption = Annotated[str | None, typer.Option(help="Start the task, and end it with this fault.")]
TaskHangsOption = Annotated[bool, typer.Option("--task-hangs", help="Start the task, and leave it at 95 %.")]
HangOption = Annotated[str | None, typer.Option(help="Carry the call out only after this time.")]
LoseReplyOption = Annotated[bool, typer.Option("--lose-reply", help="Carry the call out, but lose its reply.")]
CutOption = Annotated[bool, typer.Option("--cut", help="Cut the connection, and do nothing.")]
EndSessionsOption = Annotated[bool, typer.Option("--end-sessions", help="End all sessions just before the call.")]
PersonOption = Annotated[
    str | None, typer.Option(help="Let a person do this just before the call. See: vgpuctl sim set person --help")
]
DownOption = Annotated[str | None, typer.Option(help="Take the whole server down for this time.")]
OnOption = Annotated[str, typer.Option(help="Only calls on this object; * and ? match any characters.")]
NthOption = Annotated[int | None, typer.Option(help="Only the n-th matching call.", min=1)]
EveryOption = Annotated[int | None, typer.Option(help="Every n-th matching call.", min=1)]
ChanceOption = Annotated[float | None, typer.Option(help="Each matching call with this probability, from 0 to 1.")]
SeedOption = Annotated[int, typer.Option(help="The seed of --chance: the same seed hits the same calls.")]
TimesOption = Annotated[int | None, typer.Option(help="At most this many calls.", min=1)]
ForOption = Annotated[str | None, typer.Option("--for", help="Only for this time from now.")]


@app.command()
def add(
    call: CallArgument,
    dir: DirOption,
    fail: FailOption = None,
    retry_after: RetryAfterOption = None,
    task_fails: TaskFailsOption = None,
    task_hangs: TaskHangsOption = False,
    hang: HangOption = None,
    lose_reply: LoseReplyOption = False,
    cut: CutOption = False,
    end_sessions: EndSessionsOption = False,
    person: PersonOption = None,
    down: DownOption = None,
    on: OnOption = "*",
    nth: NthOption = None,
    every: EveryOption = None,
    chance: ChanceOption = None,
    seed: SeedOption = 1,
    times: TimesOption = None,
    lasts: ForOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Make matching calls fail: all of them, or those that --nth, --every or --chance choose.

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
    rule |= {"seconds": duration_s(value)} if How(how).needs_time else {"what": value if value is not True else ""}
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
        raise typer.BadParameter(f"choose what happens to the call, with one of --{', --'.join(sorted(faults))}")
    return given[0]


@app.command("list")
def list_(dir: DirOption, output: OutputOption = Output.TABLE) -> None:
    """List the active faults, and how many calls each has hit.

    Example:

      vgpuctl sim fault list
    """
    with sim_explained():
        found = controls(dir).faults()
    if output is Output.JSON:
        print_json({"faults": found})
        return
    for fault in found:
        met = f"hit {fault['met']} of {count(fault['concerned'], 'call')}"
        console().print(f"{fault['id']:>3}  {_sentence(fault)}; {met}")
    if not found:
        console().print("No faults.")


@app.command()
def clear(
    dir: DirOption,
    ids: Annotated[list[str] | None, typer.Argument(help="The numbers of the faults. Default: all faults.")] = None,
) -> None:
    """Clear faults. A hanging task goes on, and a server that was down comes back.

    Example:

      vgpuctl sim fault clear 2
    """
    with sim_explained():
        cleared = controls(dir).clear_faults(*(ids or ()))
    console().print(f"{count(len(cleared), 'fault')} cleared.")


def _sentence(fault: dict[str, Any]) -> str:
    called = fault["server"] if fault["method"] == "*" else fault["method"]
    words = [f"{called}:" if fault["on"] == "*" else f"{called} on {fault['on']}:", _NAMES[fault["how"]]]
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
