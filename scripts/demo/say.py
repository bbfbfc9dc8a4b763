"""What the demo prints: its own lines, and what others said, set in."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from textwrap import indent


def say(text: str) -> None:
    """Print for the one who watches."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def quote(texts: Iterable[str]) -> None:
    """Print what a task, a topic or a command said."""
    for text in texts:
        say(indent(text, "    "))
