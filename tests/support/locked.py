"""What stands in tests/requirements.txt, and what of it an installation needs."""

from __future__ import annotations

import re
from importlib.metadata import requires

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.lock import FILE

_HASHES = r"(?P<hashes>(?: \\\n    --hash=sha256:[0-9a-f]{64})+)"
RELEASE = re.compile(r"(?P<name>[a-z0-9-]+)==(?P<version>[0-9][0-9a-z.]*)" + _HASHES)


def releases() -> dict[str, re.Match[str]]:
    """By name; each with its version and its hashes."""
    return {found["name"]: found for found in RELEASE.finditer(FILE.read_text())}


def needed_by(name: str, *extras: str, python: str | None = None) -> dict[str, list[Requirement]]:
    """By name, who asks for it and how: all that must be there, as the installed packages say themselves."""
    here = {key: str(value) for key, value in default_environment().items()}
    if python is not None:
        here |= {"python_version": python, "python_full_version": f"{python}.0"}
    found: dict[str, list[Requirement]] = {}
    ahead, seen = [(name, extra) for extra in ("", *extras)], set[tuple[str, str]]()
    while ahead:
        asking, extra = ahead.pop()
        if (asking, extra) in seen:
            continue
        seen.add((asking, extra))
        for each in map(Requirement, requires(asking) or ()):
            if (each.marker is None and not extra) or (each.marker and each.marker.evaluate(here | {"extra": extra})):
                needed = canonicalize_name(each.name)
                found.setdefault(needed, []).append(each)
                ahead += [(needed, more) for more in ("", *each.extras)]
    return found
