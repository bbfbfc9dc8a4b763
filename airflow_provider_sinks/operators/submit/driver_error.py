"""What the end of a driver means: an exit code and the last status, as an error of ours."""

from __future__ import annotations

import signal

from airflow_provider_sinks.core.errors import SinkError, kind_of_exit
from airflow_provider_sinks.core.launch.out_of_memory import EXIT_CODE, SIGNS, out_of_memory
from airflow_provider_sinks.core.launch.status import SinkStatus

_SHELL_SIGNAL = 128


def error_of(code: int, sink: str, status: SinkStatus | None, last_lines: str) -> SinkError:
    """Return the error that a driver ended with, in its own words where it left some.

    :param code: the exit code of ``spark-submit``, negative for a signal; not 0.
    :param status: the newest status of the launch, if it wrote one.
    :param last_lines: the end of the driver's log, shown when the driver left no words.
    """
    if status is not None and status.error is not None:
        return status.error.error(code)
    if code == EXIT_CODE or SIGNS.search(last_lines):
        return out_of_memory(sink, next((line for line in last_lines.splitlines() if SIGNS.search(line)), ""))
    primary = f'the job of sink "{sink}" {_ended(code)} and did not say why'
    hint = "The driver's log is in the launch directory, which the task log names."
    return kind_of_exit(code).told(primary, last_lines, hint)


def _ended(code: int) -> str:
    number = -code if code < 0 else code - _SHELL_SIGNAL
    try:
        return f"was ended by {signal.Signals(number).name}"
    except ValueError:
        return f"ended with exit code {code}"
