"""Runs the demo from any folder: ``python scripts/demo``. What it does stands in :mod:`.demo`."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # not this folder, whose modules have short names
    from scripts.demo.demo import main

    sys.exit(main())
