"""The tokens of a node's pods: while the guest's clock lags, the kubelet renews them too late."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vgpuctl.sim.clock import Clock
from vgpuctl.sim.kube.machines.guest_clock import GuestClock
from vgpuctl.sim.kube.machines.guesttime import GuestTime
from vgpuctl.sim.kube.objects import Object, at, uid_of

#: kubelet (token manager): it renews a token when 80 % of the token's life is over.
RENEWED_AT = 0.8
#: Kubernetes: `expirationSeconds` of a projected token that says nothing.
DEFAULT_LIFE_S = 3600.0
#: How a container fares whose requests are answered with 401.
REFUSED = "Readiness probe failed: HTTP probe failed with statuscode: 401"


@dataclass(slots=True)
class Token:
    """`refused`: it has expired by everybody's clock but the guest's. `checks`: how often it was judged."""

    pod: Object
    life_s: float
    issued_s: float
    refused: bool = False
    checks: int = 0


class PodTokens:
    """Tracks only pods that show it: those with a token of their own and a readiness probe. While the guest's clock is
    right, no timer runs.
    """

    # kube-apiserver: `--service-account-extend-token-expiration` lets the usual token of a pod live for a year. So a
    # lagging clock hurts tokens that were asked for with an audience or a life of their own.
    def __init__(self, clock: Clock, guest: tuple[GuestClock, GuestTime], show: Callable[[Object, bool], None]) -> None:
        self._clock = clock
        self._guest_clock, self._time = guest
        self._show = show
        self._tokens: dict[str, Token] = {}

    def issue(self, pod: Object) -> None:
        """The API server issues the token, by its own clock, when the pod starts."""
        life_s = shortest_life_s(pod)
        if life_s is not None:
            self._tokens[uid_of(pod)] = token = Token(pod, life_s, self._clock.now_s)
            self._check(token)

    def forget(self, pod: Object) -> None:
        self._tokens.pop(uid_of(pod), None)

    def clear(self) -> None:
        self._tokens.clear()

    def refused(self, pod: Object) -> bool:
        token = self._tokens.get(uid_of(pod))
        return token is not None and token.refused

    def catch_up(self) -> None:
        """Note the renewals until now, before a suspend."""
        for token in self._tokens.values():
            # Without a lag no timer has noted them.
            if not self._guest_clock.lag_s:
                period_s = RENEWED_AT * token.life_s
                token.issued_s += (self._clock.now_s - token.issued_s) // period_s * period_s

    def check(self) -> None:
        """Judge all tokens: after a resume, and when the guest's clock was set."""
        for token in tuple(self._tokens.values()):
            self._check(token)

    def _check(self, token: Token) -> None:
        if self._tokens.get(uid_of(token.pod)) is not token:
            return
        now_s, lag_s = self._clock.now_s, self._guest_clock.lag_s
        renewal_s, end_s = token.issued_s + RENEWED_AT * token.life_s + lag_s, token.issued_s + token.life_s
        if now_s >= renewal_s:
            token.issued_s = now_s
            renewal_s, end_s = now_s + RENEWED_AT * token.life_s + lag_s, now_s + token.life_s
        refused = now_s >= end_s
        if refused != token.refused:
            token.refused = refused
            self._show(token.pod, refused)
        token.checks = nth = token.checks + 1
        if renewal_s > end_s:
            next_s = renewal_s if refused else end_s
            self._time.after(next_s - now_s, lambda: self._check(token) if token.checks == nth else None)


def shortest_life_s(pod: Object) -> float | None:
    """Return the shortest life of the pod's own tokens; None if it has none, or no readiness probe shows it."""
    if not any("readinessProbe" in container for container in pod["spec"]["containers"]):
        return None
    sources = (each for volume in pod["spec"].get("volumes") or [] for each in at(volume, "projected.sources") or [])
    tokens = [each["serviceAccountToken"] for each in sources if "serviceAccountToken" in each]
    return min((float(token.get("expirationSeconds") or DEFAULT_LIFE_S) for token in tokens), default=None)
