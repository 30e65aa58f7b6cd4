"""Profile files as people write them, and documents that nobody meant as one."""

from __future__ import annotations

from hypothesis import strategies as st

PROFILES = """\
version: 1
profiles:
  small: {vgpu: grid_v100-4q}
  whole: grid_v100-16q
workers:
  worker-[1-4]: small
  worker-5: grid_v100-16q
"""

CHOICES = """\
version: 1
profiles:
  small: grid_v100-4q
  whole: grid_v100-16q
workers:
  - {profile: small, names: ["gpu-*"]}
  - {profile: whole, names: gpu-7}
  - {profile: small, folder: /dc-1/vm/gpu}
  - {profile: whole, cluster: "night-*", names: "big-[1-2]"}
  - {profile: small, nodes: {pool: slices}, folder: /dc-2}
  - {profile: none, names: plain}
"""

LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
DOCUMENTS = st.recursive(LEAVES, lambda some: st.lists(some) | st.dictionaries(st.text(max_size=8), some))
