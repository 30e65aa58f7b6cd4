"""Credentials from programs and files, for a kubeconfig's user: what programs may see, and tokens that change."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from vgpuctl.model.errors import UsageError

#: kubectl reads a token's file again as often.
REREAD_AFTER_S = 60.0


def withhold_variables(user: dict[str, Any], withheld: frozenset[str]) -> None:
    """Give an exec plugin our environment without `withheld`, unless its own env sets those variables."""
    plugin, provider = user.get("exec"), user.get("auth-provider")
    if isinstance(plugin, dict):
        plugin_env = list(plugin.get("env") or ())
        set_by_plugin = {each.get("name") for each in plugin_env}
        # Official client: a plugin inherits our whole environment, and `env` can only add to it.
        plugin["env"] = plugin_env + [{"name": name, "value": ""} for name in sorted(withheld - set_by_plugin)]
    if isinstance(provider, dict) and (provider.get("config") or {}).get("cmd-path"):
        raise UsageError(
            f"The kubeconfig's auth-provider {provider.get('name')} runs a program, which kubectl no longer supports.",
            hint="Use an exec plugin instead, such as gke-gcloud-auth-plugin.",
        )


def reread_token(user: Mapping[str, Any], configuration: Any) -> None:
    """Read a tokenFile again and again. The official client reads it once, but a token usually lasts an hour."""
    file = user.get("tokenFile")
    if file and not user.get("token"):
        configuration.refresh_api_key_hook = TokenFile(Path(os.path.normpath(str(file)))).refresh


class TokenFile:
    """A token in a file. While the file cannot be read, the last token is used."""

    def __init__(self, path: Path) -> None:
        self._path, self._read_s = path, time.monotonic()

    def refresh(self, configuration: Any) -> None:
        if time.monotonic() - self._read_s < REREAD_AFTER_S:
            return
        with suppress(OSError, UnicodeDecodeError):
            if token := self._path.read_text(encoding="utf-8").strip():
                configuration.api_key["BearerToken"] = f"Bearer {token}"
                self._read_s = time.monotonic()
