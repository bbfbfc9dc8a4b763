"""``python -m airflow_provider_sinks``: what can be done with sinks outside of Airflow."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from airflow_provider_sinks import __version__
from airflow_provider_sinks.checker.command import add_check


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; wrong usage is 2."""
    parser = argparse.ArgumentParser(prog="python -m airflow_provider_sinks", description=__doc__)
    parser.add_argument("--version", action="version", version=__version__)
    add_check(parser.add_subparsers(title="commands", required=True, metavar="COMMAND"))
    options = parser.parse_args(arguments)
    return int(options.run(options))


if __name__ == "__main__":
    sys.exit(main())
