"""For tests of your own automation: a simulated vCenter and Kubernetes in a thread of the test's process.

In conftest.py: `pytest_plugins = ["vgpuctl.testing.fixtures"]`. It needs the extra: pip install 'vgpuctl[testing]'.
"""

from vgpuctl.testing.estate import Estate

__all__ = ["Estate"]
