"""``python -m airflow_provider_sinks check FOLDER``: 0 nothing found, 1 findings, 2 wrong usage."""

from __future__ import annotations

import argparse
import sys

from airflow_provider_sinks.checker.facts import Limits
from airflow_provider_sinks.core.errors import ConfigurationError, SinkError

FOUND, USAGE, FAILED = 1, 2, 3
_FORMATS = ("text", "json", "github", "sarif", "junit")  # named here: the command costs nothing until it runs


def add_check(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to a parser of commands."""
    parser = commands.add_parser(
        "check",
        help="check the DAGs and sinks of a folder",
        description="Check every DAG and sink of a folder without network, connections or Variables.",
        epilog="exit codes: 0 nothing found, 1 findings, 2 wrong usage, 3 the files could not be read",
    )
    parser.add_argument("folder", help="the folder with your DAGs and YAML files of sinks")
    parser.add_argument(
        "-f", "--format", "-o", "--output", choices=_FORMATS, default="text", help="default: %(default)s"
    )
    parser.add_argument("--ignore", action="append", default=[], metavar="RULE", help="may be given again")
    parser.add_argument("--parse-seconds", type=_seconds, default=Limits.parse_seconds, metavar="SECONDS")
    parser.add_argument("--hang-seconds", type=_seconds, default=Limits.hang_seconds, metavar="SECONDS")
    parser.set_defaults(run=_check)


def _check(options: argparse.Namespace) -> int:
    from airflow_provider_sinks.checker.formats import FORMATS
    from airflow_provider_sinks.testing import check_folder

    limits = Limits(options.parse_seconds, options.hang_seconds)
    try:
        report = check_folder(options.folder, limits=limits, ignore=options.ignore)
    except SinkError as error:
        sys.stderr.write(f"{error}\n")
        return USAGE if isinstance(error, ConfigurationError) else FAILED
    # A file's name may hold what is no text.
    written = FORMATS[options.format](report).encode(errors="backslashreplace").decode()
    sys.stdout.write(f"{written}\n")
    return FOUND if report.findings else 0


def _seconds(text: str) -> float:
    seconds = float(text)
    if seconds <= 0:
        raise argparse.ArgumentTypeError("must be more than 0")
    return seconds
