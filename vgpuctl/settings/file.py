"""The settings file, with the same names as the flags. It says where a password is, but never holds one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vgpuctl.files.reader import FileReader
from vgpuctl.model.errors import UsageError
from vgpuctl.settings.values import LISTENING, NAMES, SIZES, TIMES, SettingValue, Source, variable

#: Relative paths start at the file's own folder.
_PATHS = {
    "password-file",
    "ca-file",
    "kubeconfig",
    "profiles",
    "schedules",
    "listen-cert",
    "listen-key",
    "listen-token",
}
_SWITCHES = {"insecure", "keyring", "listen-openly"}
_SECRETS = {"password", "vcenter-password"}


def settings_file(config_flag: str | None, env: Mapping[str, str]) -> Source:
    """Read `--config`, $VGPUCTL_CONFIG, or the user's own file.

    A file in the working folder is ignored: a cloned repository must not decide where passwords go.
    """
    chosen = config_flag or env.get(variable("config"))
    # Decision 0008: no file in the working folder, whose author may be a stranger.
    path = Path(chosen).expanduser() if chosen else _default_path(env)
    if not path.is_file():
        if chosen:
            why = f"{path} is not a regular file" if path.exists() else f"There is no settings file {path}"
            raise UsageError(f"{why}.", hint="Check --config and VGPUCTL_CONFIG.")
        return {}
    return _read(path)


def _default_path(env: Mapping[str, str]) -> Path:
    home = Path(env["HOME"]) if env.get("HOME") else Path.home()
    return Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "vgpuctl" / "config.yaml"


def _read(path: Path) -> Source:
    reader = FileReader(path)
    document = reader.read_document(["version", *NAMES, *TIMES, *SIZES, *LISTENING, *_SECRETS])
    for name in _SECRETS & document.keys():
        reader.add_fault(name, "must not be in this file; write password-file: FILE, or keyring: true")
    settings = {
        name: SettingValue(_value(reader, name, document[name]), f"{name} in {path}")
        for name in (*NAMES, *TIMES, *SIZES, *LISTENING)
        if document.get(name) is not None
    }
    reader.raise_faults()
    return settings


def _value(reader: FileReader, name: str, value: Any) -> str:
    kinds: tuple[type, ...] = (str,)
    if name in _SWITCHES:
        kinds = (bool,)
    elif name in {*TIMES, *SIZES}:
        kinds = (int, float)
    if not isinstance(value, kinds) or (isinstance(value, bool) and name not in _SWITCHES):
        words = {
            str: "a string; put it in quotes",
            bool: "true or false",
            int: f"a number of {'MiB' if name in SIZES else 'seconds'}",
        }
        reader.add_fault(name, f"must be {words[kinds[0]]}")
        return ""
    return _relative_to_file(reader.path, str(value)) if name in _PATHS else str(value)


def _relative_to_file(file: Path, paths: str) -> str:
    # kubectl reads a kubeconfig's paths so, too. A mounted ConfigMap is a link into a folder that kubelet replaces.
    folder = file.absolute().parent
    return os.pathsep.join(str(folder / Path(path).expanduser()) for path in paths.split(os.pathsep))
