"""A listener can never stop the engine: if its output fails, it is muted, and the work goes on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress

from vgpuctl.engine.runner import Listener, Progress
from vgpuctl.model.errors import with_place


class MutedOnFailure:
    """Passes on what the engine reports until that fails once: a full disk, a closed terminal, a fault of ours."""

    def __init__(self, listener: Listener) -> None:
        self._listener: Listener | None = listener

    def say(self, text: str) -> None:
        self._try(lambda listener: listener.say(text))

    def progress(self, progress: Progress) -> None:
        self._try(lambda listener: listener.progress(progress))

    def _try(self, call: Callable[[Listener], None]) -> None:
        if self._listener is None:
            return
        try:
            call(self._listener)
        except BrokenPipeError:
            # The reader has closed its end of the pipe: it has seen enough.
            self._listener = None
        # Lost output must not stop a switch half way.
        except Exception as error:
            self._listener = None
            with suppress(Exception):
                print(f"Nothing more is shown of this: {with_place(error)}. The work goes on.", file=sys.stderr)
