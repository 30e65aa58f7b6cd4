"""Commands are loaded when they are chosen; until then, lists show only a name and one line. See decision 0007."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperOption
from typer.main import get_command

from vgpuctl.cli.sanitize import sanitize

# Decision 0007: if typer renames it, completion is slower and a test says so, but nothing breaks.
with suppress(ImportError):
    from typer import _completion_classes

    #: Typer removes colour tags from what zsh and fish show, and loads rich for it. Our help has no tags.
    _completion_classes._sanitize_help_text = lambda text: text


def _sanitize_echo(module: Any) -> None:
    """Sanitize typer's messages: they quote what was typed, and a shell's `*` inserts file names."""
    echo = module.echo
    module.echo = lambda message=None, *args, **more: echo(message and sanitize(str(message)), *args, **more)


# Newer typer versions bring their own click.
for _name in ("typer._click.exceptions", "click.exceptions"):
    if _name in sys.modules:
        _sanitize_echo(sys.modules[_name])


def group(**settings: Any) -> typer.Typer:
    """Return a group of commands with plain help: rich takes longer to load than everything else."""
    return typer.Typer(
        no_args_is_help=not settings.get("invoke_without_command"),
        # Decision 0007: plain help is also easier to read aloud, to search and to paste.
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        **settings,
    )


def add_lazily(app: typer.Typer, commands: Mapping[str, tuple[str, str]]) -> None:
    """Add commands: each name with its place (`module:function` or `module:group`) and the first line of its help."""
    for name, (place, line) in commands.items():
        app.command(name, cls=LazyCommand, help=line)(_loader(name, place))


def _loader(name: str, place: str) -> Callable[[], Any]:
    def load() -> Any:
        module, attribute = place.split(":")
        found = getattr(importlib.import_module(module), attribute)
        if isinstance(found, typer.Typer):
            return build_command(found)
        app = group(add_completion=False)
        app.command(name)(found)
        return build_command(app)

    return load


class LazyCommand(TyperCommand):
    """Stands for a command in lists of names, and loads the real one when it is chosen."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        assert self.callback is not None
        return self.callback().make_context(info_name, args, parent, **extra)


def build_command(app: typer.Typer) -> Any:
    """Return what Typer builds. Lists show a help's first line whole, and example lines stay as they are."""
    command = get_command(app)
    for each in (command, *getattr(command, "commands", {}).values()):
        each.short_help = (each.help or "").partition("\n")[0]
        # click: a paragraph after a line with only \b is not wrapped anew.
        each.help = re.sub(r"\n\n(?=  )", "\n\n\b\n", each.help or "")
    return command


# Decision 0007: typer converts each value by pydantic, also one that is not given, and even to complete a name.
class _PlainConverter:
    """Skips typer's own converter, which loads pydantic, where it is not needed: for defaults and for plain words."""

    def __init__(self, converter: Callable[[], Any]) -> None:
        self._converter = converter

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        if value is None or value is param.default or ctx.resilient_parsing:
            return value
        kind = _kind_of_word(param)
        if kind is not None and isinstance(value, str):
            try:
                return kind(value)
            except ValueError:
                raise _no_choice(value, kind, param, ctx) from None
        return self._converter().coerce(value, param=param, ctx=ctx)


def _no_choice(value: str, kind: Any, param: Any, ctx: Any) -> typer.BadParameter:
    from vgpuctl.basics.nearest import nearest  # noqa: PLC0415

    choices = [str(choice) for choice in kind]
    listed = ", ".join(map(repr, choices))
    return typer.BadParameter(f"{value!r} is not one of {listed}{nearest(value, choices)}", ctx=ctx, param=param)


def _kind_of_word(param: Any) -> type[str] | None:
    """Return the type of a text or choice option; None if the option has its own parser."""
    described: Any = getattr(param, "type_descriptor", None)
    kind = getattr(described, "annotation", None)
    if isinstance(kind, type) and issubclass(kind, str) and described.parameter_info.parser is None:
        return kind
    return None


def _convert_plain_words(kind: Any) -> None:
    """Convert words ourselves. Older typer versions lack this converter and do not need the patch."""
    converter = getattr(kind, "get_runtime_param", None)
    if converter is not None:
        kind.get_runtime_param = lambda self: _PlainConverter(lambda: converter(self))


for _kind in (TyperOption, TyperArgument):
    _convert_plain_words(_kind)
