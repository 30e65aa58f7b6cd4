"""An estate that must not be touched: its server counts who connects, and everything in a shell leads to it."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vgpuctl.settings.environment import FAMILIES, PASSWORD
from vgpuctl.settings.values import NAMES, TIMES, variable

SECRET = "canary-7c21"
PROXIES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
#: Every variable by which a person may have said where vgpuctl goes, as whom, and whom it trusts.
LEADING = {
    *(variable(name) for name in (*NAMES, *TIMES, PASSWORD, "config")),
    *(each for family in FAMILIES.values() for variables in family.values() for each in variables),
    "KUBECONFIG",
    "KUBERNETES_SERVICE_HOST",
    "KUBERNETES_SERVICE_PORT",
    *PROXIES,
}


class Trap(socketserver.ThreadingTCPServer):
    """`connections` counts them; each is closed at once."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), socketserver.BaseRequestHandler)
        self.port: int = self.server_address[1]
        self.connections = 0

    def verify_request(self, *_: Any) -> bool:
        self.connections += 1
        return False

    def environment(self, home: Path) -> dict[str, str]:
        """All of these lead here, and so do the files in `home`, which the last resorts are read from."""
        usual, config = home / ".kube" / "config", home / ".config" / "vgpuctl" / "config.yaml"
        for path in (usual, config):
            path.parent.mkdir(parents=True)
        usual.write_text(json.dumps(self._kubeconfig()))
        config.write_text(f"version: 1\nvcenter: 127.0.0.1:{self.port}\ncontext: production\nnamespace: production\n")
        said = dict.fromkeys(LEADING, SECRET)
        said |= {name: f"127.0.0.1:{self.port}" for name in LEADING if name.endswith(("VCENTER", "SERVER", "GOVC_URL"))}
        said |= {name: "1" for name in LEADING if name.endswith(("SECONDS", "INSECURE", "UNVERIFIED_SSL", "KEYRING"))}
        said |= {name: "ab" * 32 for name in LEADING if name.endswith("THUMBPRINT")}
        said |= {name: str(usual) for name in LEADING if name.endswith("KUBECONFIG")}
        said |= dict.fromkeys(PROXIES, f"http://127.0.0.1:{self.port}")
        said |= dict.fromkeys(("VMWARE_HOST", "KUBERNETES_SERVICE_HOST"), "127.0.0.1")
        said |= {name: str(self.port) for name in ("VMWARE_PORT", "KUBERNETES_SERVICE_PORT")}
        said |= {"VMWARE_VALIDATE_CERTS": "no", "VGPUCTL_CONTEXT": "production", "VGPUCTL_CONFIG": str(config)}
        said |= {"XDG_CONFIG_HOME": str(home / ".config"), "HOME": str(home)}
        return said

    def _kubeconfig(self) -> dict[str, Any]:
        server = {"server": f"https://127.0.0.1:{self.port}", "insecure-skip-tls-verify": True}
        return {
            "clusters": [{"name": "production", "cluster": server}],
            "users": [{"name": "me", "user": {"token": SECRET}}],
            "contexts": [{"name": "production", "context": {"cluster": "production", "user": "me"}}],
            "current-context": "production",
        }


@contextmanager
def trap() -> Iterator[Trap]:
    with Trap() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()
