"""The systemd unit that runs the daemon on a machine outside of Kubernetes."""

from __future__ import annotations

_HEAD = """\
# The daemon of vgpuctl on a machine that is no worker. Put into /etc/vgpuctl, readable for root alone:
# config.yaml (vcenter, vcenter-user, ca-file), profiles.yaml, schedules/, password and kubeconfig.
# All but the last two must be readable for every user of this machine.
[Unit]
Description=vgpuctl: the shift that is due on the vGPU cards
Wants=network-online.target
After=network-online.target
# A machine that boots before its servers tries for ever.
StartLimitIntervalSec=0

[Service]
"""
_SERVICE = """\
Type=exec
# Another user each time, without a home. systemd gives it the two secrets as files.
DynamicUser=yes
LoadCredential=password:/etc/vgpuctl/password
LoadCredential=kubeconfig:/etc/vgpuctl/kubeconfig
# With the node's name the daemon refuses to run on a worker.
Environment=NODE_NAME=%H
ExecStart=/opt/vgpuctl/bin/vgpuctl daemon{arguments} --config /etc/vgpuctl/config.yaml \\
  --profiles /etc/vgpuctl/profiles.yaml --schedules /etc/vgpuctl/schedules \\
  --password-file ${{CREDENTIALS_DIRECTORY}}/password --kubeconfig ${{CREDENTIALS_DIRECTORY}}/kubeconfig
# 2: the settings or files are wrong, or this machine is a worker. Trying again would not help.
Restart=always
RestartPreventExitStatus=2
RestartSec=10
# The daemon ends within 20 seconds. Tasks of vCenter go on, and the next start finds them.
TimeoutStopSec=60
MemoryMax=512M
"""
_HARDENED = """\
NoNewPrivileges=yes
CapabilityBoundingSet=
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
PrivateUsers=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
ProcSubset=pid
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
RemoveIPC=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
UMask=0077

[Install]
WantedBy=multi-user.target
"""


def unit(*, dry_run: bool) -> str:
    """Return the unit. `dry_run`: the daemon only says what it would do."""
    return _HEAD + _SERVICE.format(arguments=" --dry-run" if dry_run else "") + _HARDENED
