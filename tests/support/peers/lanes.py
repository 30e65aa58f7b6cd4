"""How the contract's tests are spread over four processes, so that the real servers are started as seldom as can be."""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

STORY, COMMANDS = "test_story.py", "test_commands.py"


class Lanes(LoadScopeScheduling):  # type: ignore[misc]  # xdist says nothing of its types
    """One lane a process. `--dist loadgroup` would do, but xdist 3.8 silently ignores its groups under pytest 9.2."""

    def _split_scope(self, nodeid: str) -> str:
        return lane(nodeid)


def lane(nodeid: str) -> str:
    """The stories take longest, so those on each vCenter are a lane; the real cluster is started in one lane alone."""
    ours = "[ours" in nodeid
    if STORY in nodeid:
        return "stories on ours" if ours else "stories on vcsim"
    return "the real cluster" if "[real" in nodeid or COMMANDS in nodeid else "the rest"
