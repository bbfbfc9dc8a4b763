"""Records of nearly a megabyte, more of them than the driver has memory; and one row that no memory holds."""

from __future__ import annotations

from airflow_provider_sinks.core.errors import ExitCode
from airflow_provider_sinks.operators.submit.driver_error import error_of
from tests.live.stage import Stage

_RECORDS, _BYTES = 900, 900_000
_TEXT = {"from_": {"format": "text"}}


def _large_records(stage: Stage, suffix: str) -> str:
    """Make a topic with more bytes than fit into the driver's 700 MB; they shrink on their way, not there."""
    source = stage.topic(f"{suffix}-source")
    rows = ((0, None, f"{number} ".ljust(_BYTES, "x")) for number in range(_RECORDS))
    options: dict[str, str | int] = {"compression.type": "lz4", "queue.buffering.max.kbytes": 100_000}
    stage.produce(source, rows, **options)
    return source


def test_a_small_epoch_of_large_records_does_not_fill_the_driver(stage: Stage) -> None:
    source = _large_records(stage, "large")
    sink = stage.sink("large", source, **_TEXT)
    driver = sink.start()

    assert driver.wait(300) == ExitCode.OK, driver.log[-3000:]

    found = [int((record.value or b"")[:8].split()[0]) for record in stage.read(sink.out)]
    assert found == list(range(_RECORDS))


def test_a_driver_whose_memory_does_not_hold_a_row_is_told_as_that(stage: Stage) -> None:
    source = stage.source("too-large", {0: [("k", "x")]})
    sink = stage.sink("too-large", source, select=["repeat(value, 1000000000) AS value"], **_TEXT)
    driver = sink.start()

    code = driver.wait(300)

    error = error_of(code, sink.parsed.name, driver.status, driver.log)
    assert error.primary == f'the driver or an executor of sink "{sink.parsed.name}" ran out of memory'
    assert "OutOfMemoryError" in error.detail
    assert "spark.driver.memory" in error.hint
    assert error.retryable
    assert stage.read(sink.out) == []
