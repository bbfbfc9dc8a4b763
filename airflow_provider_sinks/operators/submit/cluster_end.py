"""How a driver on YARN ended: what the manager and its last status say, and what everybody may see of it."""

from __future__ import annotations

from dataclasses import replace

from airflow_provider_sinks.core.errors import ExitCode, FencedError, UnavailableError
from airflow_provider_sinks.core.launch.status import SinkStatus
from airflow_provider_sinks.core.launch.yarn import Application, exit_code
from airflow_provider_sinks.drivers.on_yarn import ClusterDriver
from airflow_provider_sinks.metadata.memory import SinkMemory
from airflow_provider_sinks.operators.submit.launch import LaunchEnd


def launch_end(
    driver: ClusterDriver,
    application: Application | None,
    status: SinkStatus | None,
    launch: int,
    memory: SinkMemory,
) -> LaunchEnd:
    """Return how a driver ended that is over.

    One that was killed because a newer launch began counts as fenced: its task must not come back and end
    the newer one in turn.

    :param launch: its number; 0 when that is not known.
    :param memory: of the sink, with the number of the newest launch.
    """
    code = exit_code(application, status)
    words = application.diagnostics if application else f"YARN does not know {driver.id} any more."
    if code < 0 and launch and (newest := _newest_launch(memory)) > launch:
        code, words = ExitCode.FENCED, f"Launch {newest} of this sink took over from launch {launch}."
    return LaunchEnd(code, status, words if code else "")


def shown_end(end: LaunchEnd, sink: str, launch: int, memory: SinkMemory) -> LaunchEnd:
    """Show how a driver ended that could not say it: its JVM ran out of memory, or was killed.

    Where a newer launch took over, that one shows its own.

    :returns: the end, with the status that is shown.
    """
    error = end.error(sink)
    is_told = end.status is not None and end.status.state.is_final
    if error is None or is_told or end.stopped or isinstance(error, FencedError):
        return end
    status = (end.status or SinkStatus(sink, launch)).ended(error)
    memory.show(status)
    return replace(end, status=status)


def _newest_launch(memory: SinkMemory) -> int:
    try:
        return memory.recall().launch
    except UnavailableError:
        return 0
