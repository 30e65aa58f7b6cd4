"""The manifests of a deployed daemon: its rights, its files and what runs it, as documents for kubectl."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vgpuctl.cli.common import read_all_files
from vgpuctl.cli.documents import as_yaml
from vgpuctl.cli.showing.rights_files import comment_lines, manifest
from vgpuctl.files import Files
from vgpuctl.files.opening import MAX_BYTES, read_bounded
from vgpuctl.kube.deployment import PASSWORD_FOLDER, PASSWORD_KEY, RESTRICTED, SETTINGS_FILE, Deployment
from vgpuctl.kube.manifests import Grant, Object, Subject
from vgpuctl.kube.rights import OURS, Extra, rights
from vgpuctl.model.conduct import OnStuck
from vgpuctl.model.errors import UsageError
from vgpuctl.settings import Flags, deployed_settings, kubernetes_settings, profiles_path, schedules_path
from vgpuctl.settings.deployed import CA_FILE

PROFILES_FILE, SCHEDULES = "profiles.yaml", "schedules"
#: Kubernetes: the characters of a ConfigMap's key.
_KEY = re.compile(r"[-._A-Za-z0-9]{1,200}")
#: Kubernetes: a ConfigMap holds 1 MiB at most.
MOST_BYTES = 1 << 20

ConfigFiles = dict[str, tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the command line says of the daemon. `trial`: it only says what it would do."""

    image: str
    replicas: int
    secret: str
    api_port: int
    cluster_api: bool
    trial: bool


def documents(flags: Flags, wanted: Wanted) -> tuple[str, list[Object]]:
    """Return the manifests as YAML documents, and the same objects as data."""
    files = read_all_files(flags)
    grant, deployment = _grant(flags, wanted, files), _deployment(flags, wanted, files)
    own = list(deployment.objects())
    text = manifest(grant) + "".join(f"{_commented(found, why)}\n" for found, why in own)
    return text, [*(found for found, _ in grant.objects()), *(found for found, _ in own)]


def _commented(found: Object, why: str) -> str:
    begin, _, rest = as_yaml(found).partition("\n")
    return f"{begin}\n{comment_lines(why)}{rest}"


def _grant(flags: Flags, wanted: Wanted, files: Files) -> Grant:
    """Return the rights that these files need. On trial, none is a right to write."""
    own, name = kubernetes_settings(flags).namespace, _account(wanted)
    return Grant(
        name=name,
        namespace=own,
        rights=rights(frozenset(_extras(wanted, files)), read_only=wanted.trial),
        subjects=(Subject(kind="ServiceAccount", name=name, namespace=own),),
        labels=RESTRICTED,
    )


def _account(wanted: Wanted) -> str:
    # As `vgpuctl rights --read-only` calls it, so that neither takes the other's rights away.
    return f"{OURS}-read-only" if wanted.trial else OURS


def _extras(wanted: Wanted, files: Files) -> Iterator[Extra]:
    if files.scales:
        yield Extra.SCALE
    if any(table.conduct.on_stuck is OnStuck.FORCE for table in files.timetables.values()):
        yield Extra.FORCE
    if wanted.cluster_api:
        yield Extra.CLUSTER_API


def _deployment(flags: Flags, wanted: Wanted, files: Files) -> Deployment:
    own = kubernetes_settings(flags).namespace
    settings = deployed_settings(flags)
    texts = _timetables(schedules_path(flags)) | {PROFILES_FILE: (PROFILES_FILE, _text(profiles_path(flags)))}
    if settings.ca:
        texts[CA_FILE] = (CA_FILE, settings.ca)
    written = {
        "version": 1,
        **settings.settings,
        "password-file": f"{PASSWORD_FOLDER}/{PASSWORD_KEY}",
        "namespace": own,
        "profiles": PROFILES_FILE,
        # A folder without timetables would not exist in the volume, and a folder that is named must exist.
        **({"schedules": SCHEDULES} if files.timetables else {}),
    }
    texts[SETTINGS_FILE] = (SETTINGS_FILE, as_yaml(written).removeprefix("---\n") + "\n")
    return Deployment(
        namespace=own,
        account=_account(wanted),
        image=wanted.image,
        replicas=wanted.replicas,
        secret=wanted.secret,
        files=_bounded(dict(sorted(texts.items()))),
        worker_label=files.catalogue.label,
        ports=(wanted.api_port, settings.port),
        arguments=("--dry-run",) if wanted.trial else (),
    )


def _timetables(schedules: Path) -> ConfigFiles:
    """Return each timetable's key and path. A key has no slash, so the folder is a part of the name."""
    paths = sorted(schedules.glob("*.yaml")) if schedules.is_dir() else [schedules]
    return {f"schedule.{path.name}": (f"{SCHEDULES}/{path.name}", _text(path)) for path in paths if path.exists()}


def _text(path: Path) -> str:
    # Read for the second time, which a pipe does not allow.
    if not path.is_file():
        raise UsageError(f"{path} is no regular file.", hint="Give the profiles as a file.")
    return read_bounded(path)[:MAX_BYTES].decode()


def _bounded(texts: ConfigFiles) -> ConfigFiles:
    """Return the files if a ConfigMap can hold them."""
    for key, (path, _) in texts.items():
        if not _KEY.fullmatch(key):
            raise UsageError(
                f"{path}: a ConfigMap takes no file of this name.", hint="Use letters, digits, '-', '_' and '.'."
            )
    size = sum(len(text.encode()) for _, text in texts.values())
    if size > MOST_BYTES:
        raise UsageError(
            f"The files have {size} bytes, and a ConfigMap takes {MOST_BYTES} at most.",
            hint="Choose workers by folder, cluster or node label instead of by name.",
        )
    return texts
