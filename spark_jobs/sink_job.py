"""The application that spark-submit runs for one launch of a sink.

    spark-submit ... sink_job.py --launch <directory>

It exits with a code of :class:`airflow_provider_sinks.core.errors.ExitCode`; why is in ``status.json``.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path


def main() -> None:
    """Run the launch and end the process with its exit code."""
    parser = argparse.ArgumentParser(prog="sink_job.py", description="Run one launch of a sink.")
    parser.add_argument("--launch", required=True, type=Path, help="the launch's private directory")
    arguments = parser.parse_args()

    from airflow_provider_sinks.core.launch.files import LaunchFiles
    from airflow_provider_sinks.streaming.job import run
    from airflow_provider_sinks.streaming.orphan import OrphanWatch

    files = LaunchFiles(arguments.launch)
    OrphanWatch(files).start()
    code = run(files)
    sys.stdout.flush()
    sys.stderr.flush()
    # A thread that hangs in a client must not keep a driver alive whose work is over.
    os._exit(code)


if __name__ == "__main__":
    main()
