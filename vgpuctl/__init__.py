"""vgpuctl: vGPU profiles for Kubernetes workers on vSphere, switched by timetable."""

__version__ = "0.1.0"
