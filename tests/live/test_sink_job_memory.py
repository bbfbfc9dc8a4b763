"""Records of nearly a megabyte, and more of them than the driver has memory."""

from __future__ import annotations

from airflow_provider_sinks.core.errors import ExitCode
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
