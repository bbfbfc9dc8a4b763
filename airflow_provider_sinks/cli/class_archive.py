"""``class-archive``: keeps Spark's classes in a file, so that drivers on this machine start sooner."""

from __future__ import annotations

import argparse
import os

from airflow_provider_sinks.cli.frame import command, show
from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.hooks.class_archive import ClassArchive
from airflow_provider_sinks.hooks.spark import driver_environment


@command
def class_archive(options: argparse.Namespace) -> None:
    """Write the archive, and say where it is."""
    environment = driver_environment(os.environ)
    archive = ClassArchive.of(options.spark_submit, environment)
    if archive is None:
        problem = Problem(
            "--spark-submit", f"{options.spark_submit} was not found on the PATH, or HOME is not set"
        )
        raise ConfigurationError("there is no Spark to keep the classes of", [problem])
    file = archive.make(environment)
    show([{"file": str(file), "bytes": file.stat().st_size}], options.output)
