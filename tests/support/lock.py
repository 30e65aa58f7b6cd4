"""tests/requirements.txt: what `make test` installs, each release with the hashes of its wheels.

python -m tests.support.lock         the newest releases within the bounds of pyproject.toml (make lock)
python -m tests.support.lock fits    exit code 0 if the file serves this Python and this system
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

from tests.support.paths import ROOT

FILE = ROOT / "tests" / "requirements.txt"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
MACHINES = ("x86_64", "aarch64")
#: Of systems, the newest C library that a wheel may need: glibc 2.39 and so on. An older system may take another wheel.
NEWEST_GLIBC = (39, 34, 28)
#: And those that wheels are made for.
GLIBC = (39, 35, 34, 31, 28, 27, 26, 24, 17, 12, 5)
HEAD = f"""\
# What `make test` installs on Linux: each release with the hashes of its wheels for Python {", ".join(PYTHONS)}
# on {" and ".join(MACHINES)}. Written by `make lock`; the bounds stand in pyproject.toml.
"""

Report = list[dict[str, Any]]


def bounds() -> list[str]:
    """All that pyproject.toml asks for: to run, in each extra, and to build."""
    found = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = found["project"]
    extras = [each for extra in project["optional-dependencies"].values() for each in extra]
    asked = [*project["dependencies"], *extras, *found["build-system"]["requires"]]
    return [each for each in asked if not each.startswith(f"{project['name']}[")]


def fits() -> bool:
    """An older Python than all of these cannot run vgpuctl; a newer one, or another system, takes other wheels."""
    library, version = platform.libc_ver()
    new_enough = tuple(map(int, version.split(".")[:2])) >= (2, min(NEWEST_GLIBC)) if version else False
    here = ".".join(map(str, sys.version_info[:2]))
    return library == "glibc" and new_enough and here in PYTHONS and platform.machine() in MACHINES


def resolve(requirements: Iterable[str], python: str, machine: str, glibc: int, *options: str) -> Report:
    """What pip would install there, and from which files. Nothing is installed."""
    tags = [f"manylinux_2_{minor}_{machine}" for minor in GLIBC if minor <= glibc]
    tags += [f"manylinux{old}_{machine}" for old in ("2014", "2010", "1")]
    with tempfile.TemporaryDirectory() as folder:
        asked, report = Path(folder) / "asked.txt", Path(folder) / "report.json"
        asked.write_text("\n".join(requirements))
        words = ["install", "--dry-run", "--ignore-installed", "--quiet", "--disable-pip-version-check"]
        words += ["--only-binary=:all:", "--target", folder, "--python-version", python, "--report", str(report)]
        words += [word for tag in tags for word in ("--platform", tag)]
        subprocess.run([sys.executable, "-m", "pip", *words, *options, "--requirement", str(asked)], check=True)
        found: Report = json.loads(report.read_text())["install"]
        return found


def lock() -> str:
    """pip judges the markers of dependencies by the Python that it runs on; the oldest one needs the most packages."""
    if ".".join(map(str, sys.version_info[:2])) != PYTHONS[0]:
        raise SystemExit(f"The file is written with Python {PYTHONS[0]}: make clean lock PYTHON=python{PYTHONS[0]}")
    every = resolve(bounds(), PYTHONS[0], MACHINES[0], NEWEST_GLIBC[0])
    hashes: dict[str, set[str]] = defaultdict(set)
    _add(hashes, every)
    compiled = [_pinned(each) for each in every if not each["download_info"]["url"].endswith("-none-any.whl")]
    for python, machine in product(PYTHONS, MACHINES):
        wanted = compiled
        for glibc in NEWEST_GLIBC:
            found = resolve(wanted, python, machine, glibc, "--no-deps") if wanted else []
            _add(hashes, found)
            wanted = [_pinned(each) for each in found if _glibc_of(each) > min(NEWEST_GLIBC)]
    by_name = sorted(hashes, key=lambda release: release.split("=="))
    return HEAD + "".join(_lines(release, hashes[release]) for release in by_name)


def _add(hashes: dict[str, set[str]], report: Report) -> None:
    for each in report:
        hashes[_pinned(each)].add(each["download_info"]["archive_info"]["hashes"]["sha256"])


def _glibc_of(each: dict[str, Any]) -> int:
    """A wheel may name several C libraries; the oldest of them is what it needs."""
    return min(map(int, re.findall(r"manylinux_2_(\d+)_", each["download_info"]["url"])), default=0)


def _pinned(each: dict[str, Any]) -> str:
    found = each["metadata"]
    return f"{re.sub('[-_.]+', '-', found['name']).lower()}=={found['version']}"


def _lines(release: str, hashes: set[str]) -> str:
    return " \\\n".join([release, *(f"    --hash=sha256:{each}" for each in sorted(hashes))]) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["fits"]:
        sys.exit(not fits())
    FILE.write_text(lock())
