"""Time inside a guest: it stands still while the VM is suspended."""

from __future__ import annotations

from vgpuctl.sim.clock import Action, Clock, Timer


class GuestTime:
    """Timers that pause and resume with the VM, and are lost when it is powered off."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._running: dict[int, tuple[Timer, Action]] = {}
        self._paused: list[tuple[float, Action]] = []
        self._last = 0
        self.frozen = False

    def after(self, delay_s: float, action: Action) -> None:
        if self.frozen:
            self._paused.append((delay_s, action))
            return
        self._last += 1
        number = self._last

        def due() -> None:
            del self._running[number]
            action()

        self._running[number] = (self._clock.after(delay_s, due), action)

    def freeze(self) -> None:
        if self.frozen:
            return
        self.frozen = True
        # Measured on kubemark: a frozen kubelet does nothing at all, and goes on where it was.
        for timer, action in self._running.values():
            timer.cancel()
            self._paused.append((timer.due_s - self._clock.now_s, action))
        self._running.clear()

    def thaw(self) -> None:
        self.frozen = False
        paused, self._paused = self._paused, []
        for delay_s, action in paused:
            self.after(delay_s, action)

    def clear(self) -> None:
        for timer, _ in self._running.values():
            timer.cancel()
        self._running.clear()
        self._paused.clear()
        self.frozen = False
