"""How long an API server asks to be left alone, as its own words and headers say it."""

from __future__ import annotations

import pytest

from vgpuctl.kube.client import LONGEST_WAIT_S, error_for_status
from vgpuctl.model.errors import ExitCode

APF = b"Too many requests, please try again later.\n"
STALE = b'{"message": "Cannot evict pod", "details": {"causes": [{"reason": "DisruptionBudget"}]}}'


@pytest.mark.parametrize(
    ("status", "body", "after", "expected"),
    [
        (429, APF, "1", 1.0),
        (429, STALE, "10", 10.0),
        (503, b"{}", "5", 5.0),
        (429, STALE, None, 0.0),
        (503, b"{}", "86400", LONGEST_WAIT_S),
        (503, b"{}", "Wed, 21 Oct 2026 07:28:00 GMT", 0.0),
    ],
)
def test_it_is_read_and_bounded(status: int, body: bytes, after: str | None, expected: float) -> None:
    error = error_for_status(status, body, "sim", after=after)
    assert (error.after_s, error.passing) == (expected, True)
    assert (error.exit_code is ExitCode.UNREACHABLE) == (body is not STALE), "who asks for a pause is as good as away"
