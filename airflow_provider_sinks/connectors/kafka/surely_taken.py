"""Which rows their topic takes for sure, so that nobody needs their source records any more."""

from __future__ import annotations

from dataclasses import dataclass

LAST_TIME_MS = 2**63 - 1


@dataclass(frozen=True)
class SurelyTaken:
    """What the data topic takes for sure; only what it may refuse keeps the record's own key and value.

    :param size_bytes: of key, value and headers.
    :param times_ms: the times of messages, first and last, in milliseconds since 1970.
    """

    size_bytes: int
    times_ms: tuple[int, int] = (0, LAST_TIME_MS)
