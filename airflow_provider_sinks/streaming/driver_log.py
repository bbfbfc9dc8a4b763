"""The driver's own words for its log."""

from __future__ import annotations

import sys


def say(text: str) -> None:
    """Print a line to the driver's log at once."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201  the driver's log is what it prints
