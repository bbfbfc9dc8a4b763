"""The application by which a validation asks Spark about the SQL of sinks.

    spark-submit ... sql_check.py --questions <directory>

The answers are a file in that directory.
"""

from __future__ import annotations

import argparse
from pathlib import Path


def main() -> None:
    """Answer the questions of a directory."""
    parser = argparse.ArgumentParser(prog="sql_check.py", description="Ask Spark about the SQL of sinks.")
    parser.add_argument("--questions", required=True, type=Path, help="the private directory of a validation")
    arguments = parser.parse_args()

    from airflow_provider_sinks.core.query.questions import QuestionFiles
    from airflow_provider_sinks.streaming.sql_answers import answer

    answer(QuestionFiles(arguments.questions))


if __name__ == "__main__":
    main()
