"""Sinks that copy whole records: without Spark, by driver or tasks; through Spark where somebody wants it."""

from __future__ import annotations

import pytest

from airflow_provider_sinks.core.errors import ExitCode
from airflow_provider_sinks.core.progress.record import DRIVER, SINGLE_WRITER
from airflow_provider_sinks.core.spec.copies import SETTING
from tests.live.stage import WHO_WRITES, KeyValue, Sink, Stage

_BYTES = {"from_": {"format": "bytes", "max_offsets_per_epoch": 3_000}, "to": {"partitions": 3}}
_ODD: list[KeyValue] = [
    (b"k", b"v"),
    (None, b""),
    (b"", None),
    (None, None),
    (b"\xff", b"\xfe\x00"),
    ("k", "w" * 9_999),
]
_MANY: list[KeyValue] = [(f"key-{n % 7}", f"value {n}") for n in range(5_000)]


def _copied(sink: Sink) -> str:
    """Say how the sink's driver tells that it copies without Spark."""
    return f'sink "{sink.spec["name"]}" copies records without Spark'


def _by_key(stage: Stage, topic: str) -> dict[bytes | None, list[bytes | None]]:
    found: dict[bytes | None, list[bytes | None]] = {}
    for record in stage.read(topic):
        found.setdefault(record.key, []).append(record.value)
    return found


@pytest.mark.parametrize("stage", WHO_WRITES, indirect=True)
def test_records_are_copied_as_they_are_without_spark(stage: Stage) -> None:
    sink = stage.sink("odd", stage.source("odd", {0: _ODD}), **{**_BYTES, "to": {"partitions": 1}})

    status = sink.run()

    wanted = [tuple(one.encode() if isinstance(one, str) else one for one in pair) for pair in _ODD]
    assert [(record.key, record.value) for record in stage.read(sink.out)] == wanted
    assert status.rows_total == len(_ODD)
    assert stage.host is not None
    stage.host.process.wait_until(lambda: _copied(sink) in stage.host.process.log)


@pytest.mark.parametrize("stage", WHO_WRITES, indirect=True)
def test_epochs_are_copied_in_the_order_of_each_key_and_a_second_launch_goes_on(stage: Stage) -> None:
    source = stage.source("many", dict.fromkeys(range(2), _MANY))
    sink = stage.sink("many", source, **_BYTES)

    first = sink.run()
    stage.produce(source, [(0, "new", "row"), (1, "new", "row")])
    second = sink.run()

    assert (first.rows_total, second.rows_total) == (10_000, 10_002)
    found = _by_key(stage, sink.out)
    assert found.pop(b"new") == [b"row", b"row"]
    for key, values in found.items():
        once = [value.encode() for name, value in _MANY if name.encode() == key]  # type: ignore[union-attr]
        assert sorted(values) == sorted(once * 2)  # type: ignore[type-var]
        assert [v for n, v in enumerate(values) if v not in values[:n]] == once
    assert {writer for writer, _ in stage.progress(sink)} == {DRIVER, "p0", "p1"}


@pytest.mark.parametrize("stage", WHO_WRITES, indirect=True)
def test_one_writer_copies_each_epoch_whole_without_spark(stage: Stage) -> None:
    source = stage.source("whole", dict.fromkeys(range(3), _MANY))
    sink = stage.sink("whole", source, **{**_BYTES, "to": {"partitions": 1}}, writers="single")

    status = sink.run()

    assert status.rows_total == 15_000
    wanted = [tuple(str(part).encode() for part in pair) for pair in _MANY]
    found = [(record.key, record.value) for record in stage.read(sink.out)]
    assert found == [pair for begin in range(0, 5_000, 1_000) for pair in wanted[begin : begin + 1_000] * 3]
    assert stage.host is not None
    stage.host.process.wait_until(lambda: _copied(sink) in stage.host.process.log)
    assert {writer for writer, _ in stage.progress(sink)} == {DRIVER, SINGLE_WRITER}


@pytest.mark.parametrize("stage", WHO_WRITES, indirect=True)
def test_a_record_that_is_no_text_is_named_and_nothing_of_its_epoch_is_written(stage: Stage) -> None:
    source = stage.source("text", {0: [("k", "text"), ("k", b"\xff")]})
    sink = stage.sink("text", source, from_={"format": "text"})

    status = sink.fail(ExitCode.CONFIGURATION)

    assert status.error is not None
    assert f"Record {source}/0 at offset 1: The value is not UTF-8" in status.error.detail
    assert stage.read(sink.out) == []


def test_a_setting_lets_records_pass_through_spark(stage: Stage) -> None:
    sink = stage.sink("through", stage.source("through", {0: _ODD}), **_BYTES)
    sink.conf = {SETTING: "false"}

    driver = sink.start()

    assert driver.wait() == ExitCode.OK
    assert len(stage.read(sink.out)) == len(_ODD)
    assert _copied(sink) not in driver.log
