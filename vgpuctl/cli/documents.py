"""Documents for programs, as text: reading them back gives the same data, and a terminal obeys nothing in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from vgpuctl.cli.sanitize import RISKY, escaped, whole

Document = Mapping[str, Any]


def as_line(found: Document) -> str:
    return escaped(json.dumps(found, ensure_ascii=False))


def as_json(found: Document) -> str:
    return escaped(json.dumps(found, indent=2, ensure_ascii=False))


def as_yaml(found: Document) -> str:
    """Return one of a stream of documents. libyaml is used if it is installed, for large estates."""
    import yaml  # noqa: PLC0415

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        """Writes risky texts in double quotes, where they can be escaped."""

    def represent(dumper: Any, text: str) -> Any:
        risky = not RISKY.isdisjoint(map(ord, text))
        return dumper.represent_scalar("tag:yaml.org,2002:str", whole(text), style='"' if risky else None)

    Dumper.add_representer(str, represent)
    dumped = yaml.dump(found, Dumper=Dumper, sort_keys=False, allow_unicode=True)
    return "---\n" + escaped(dumped.rstrip("\n"))
