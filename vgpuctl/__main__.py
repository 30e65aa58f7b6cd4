"""`python -m vgpuctl` is the same as `vgpuctl`."""

from vgpuctl.cli import main

main()
