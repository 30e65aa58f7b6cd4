"""Documents for programs, as text: reading them back gives the same data, and a terminal obeys nothing in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from vgpuctl.cli.sanitize import RISKY, escaped, without_surrogates

_LINE_FEED = ord("\n")

Document = Mapping[str, Any]


def as_line(document: Document) -> str:
    return escaped(json.dumps(document, ensure_ascii=False))


def as_json(document: Document) -> str:
    # JSON reads an escaped character back as the same one, and no terminal obeys it.
    return escaped(json.dumps(document, indent=2, ensure_ascii=False))


def as_yaml(document: Document) -> str:
    """Return one of a stream of documents. libyaml is used if it is installed, for large estates."""
    import yaml  # noqa: PLC0415

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        """Writes risky texts in double quotes, where they can be escaped, and other texts of several lines as such."""

        def ignore_aliases(self, data: Any) -> bool:
            # An alias is hard to read, and kubectl's patches do not know it.
            return True

    def represent(dumper: Any, text: str) -> Any:
        found = RISKY & set(map(ord, text))
        style = '"' if found - {_LINE_FEED} else "|" if found else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", without_surrogates(text), style=style)

    Dumper.add_representer(str, represent)
    dumped = yaml.dump(document, Dumper=Dumper, sort_keys=False, allow_unicode=True)
    return "---\n" + escaped(dumped.rstrip("\n"))
