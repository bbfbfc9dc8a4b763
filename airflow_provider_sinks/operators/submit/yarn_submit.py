"""One ``spark-submit`` to YARN, which ends as soon as the driver is submitted.

What was submitted is found by a tag of its own, and not in what ``spark-submit`` prints: that hangs on the
log level of a Spark installation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.common.compat.sdk import AirflowException

from airflow_provider_sinks.clients.yarn import YarnClient
from airflow_provider_sinks.core.errors import JobFailedError
from airflow_provider_sinks.core.launch.files import LaunchFiles
from airflow_provider_sinks.core.launch.yarn import Application, launch_tag, owner_tag, sink_tag, spec_tag
from airflow_provider_sinks.drivers.application import application_file, write_library
from airflow_provider_sinks.hooks.spark import LOG4J2_FILE, DriverProcess
from airflow_provider_sinks.operators.submit.client_launch import Submission, Submit, no_spark_submit

_END_SECONDS = 10.0
"""How long a spark-submit that prints no more may take to end."""


class YarnSubmit:
    """The submission of one launch.

    :param launch_id: random text of this launch.
    :param submit: runs ``spark-submit``.
    :param client: the resource manager.
    """

    def __init__(self, launch_id: str, submit: Submit, client: YarnClient) -> None:
        self._launch_id = launch_id
        self._submit = submit
        self._client = client
        self._process: DriverProcess | None = None
        self._called_off = False

    def run(self, files: LaunchFiles, spec: Mapping[str, Any], owner: str) -> Application | None:
        """Submit, and return the application; ``None`` when it was called off.

        :param files: the launch, written; its connections may be deleted afterwards.
        :param spec: the sink, as JSON values.
        """
        sink = str(spec["name"])
        tags = (sink_tag(sink), owner_tag(owner, sink), launch_tag(self._launch_id), spec_tag(spec))
        submission = Submission(
            application_file(),
            ("--launch", "."),
            (write_library(files.directory),),
            files=(files.launch, files.connections, LOG4J2_FILE),
            tags=tags,
        )

        def take(hook: SparkSubmitHook) -> None:
            self._process = _Submitting(hook, files, self._submitted_id)
            if self._called_off:
                self._process.call_off()

        try:
            self._submit(submission, take)
        except FileNotFoundError as error:
            raise no_spark_submit(error) from None
        except (AirflowException, RuntimeError) as error:
            if not self._called_off:
                raise self._failure(sink, files, error) from None
        return self._submitted()

    def call_off(self) -> None:
        """End what is on its way. Made for signal handlers.

        :raises UnavailableError: the manager cannot be asked.
        """
        self._called_off = True
        if self._process is None:
            return
        self._process.call_off()
        self._process.end(0)
        if (app := self._submitted()) is not None:
            self._client.kill(app.id)

    def _failure(self, sink: str, files: LaunchFiles, error: Exception) -> JobFailedError:
        last_lines = self._process.last_lines if self._process else ""
        return JobFailedError(
            f'the job of sink "{sink}" was not submitted',
            last_lines or str(error),
            f"What spark-submit said is in {files.driver_log}.",
        )

    def _submitted(self) -> Application | None:
        return next(iter(self._client.tagged(launch_tag(self._launch_id))), None)

    def _submitted_id(self) -> str:
        app = self._submitted()
        return app.id if app else ""


class _Submitting(DriverProcess):
    """A ``spark-submit`` that ends as soon as the driver is submitted.

    :param submitted_id: asks the manager for the id of what was submitted.
    """

    def __init__(self, hook: SparkSubmitHook, files: LaunchFiles, submitted_id: Callable[[], str]) -> None:
        super().__init__(hook, files.driver_log, lambda _: None)
        self._submitted_id = submitted_id

    def _take_output(self, lines: Iterator[str]) -> None:
        """Read to the end, where the provider reads the application's id, and wants to find one.

        The process is waited for here: the provider does not come to it when the manager cannot be asked.
        """
        super()._take_output(lines)
        self.ended_within(_END_SECONDS)
        self._hook._yarn_application_id = self._submitted_id() or None  # noqa: SLF001
