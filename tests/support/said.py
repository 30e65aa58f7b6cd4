"""What the tests of settings share: one estate's login, said in one way or another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vgpuctl.settings import Flags, settings
from vgpuctl.vsphere.session import VcenterSettings

CANARY = "canary-0f3b"


def vcenter(home: Path, *, env: dict[str, str] | None = None, **flags: Any) -> VcenterSettings:
    """As the command line would have it, with nothing in the environment but this."""
    return settings(Flags(**flags), {"HOME": str(home), **(env or {})}).vcenter


def govc(url: str = "one.example.com", user: str = "alice", password: str = CANARY) -> dict[str, str]:
    return {"GOVC_URL": url, "GOVC_USERNAME": user, "GOVC_PASSWORD": password}


def secret(path: Path, text: str = f"{CANARY}\n", mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def config(home: Path, text: str) -> Path:
    path = home / ".config" / "vgpuctl" / "config.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"version: 1\n{text}")
    return path
