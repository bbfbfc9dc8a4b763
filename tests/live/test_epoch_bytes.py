"""Epochs are bounded by the weight of their records: they begin small, shrink and grow, and lose nothing."""

from __future__ import annotations

from tests.live.stage import KeyValue, Stage

_TEXT = {"from_": {"format": "text"}}
_LARGE_BYTES, _RECORDS = 100_000, 60
_MANY = 4_000


def test_an_epoch_of_large_records_holds_few_of_them(stage: Stage) -> None:
    rows: list[KeyValue] = [("k", f"{number} ".ljust(_LARGE_BYTES, "x")) for number in range(_RECORDS)]
    source = stage.source("large", {0: rows[::2], 1: rows[1::2]})
    sink = stage.sink("large", source, **_TEXT)

    driver = sink.submit("--conf", f"spark.sinks.epochBytes={10 * _LARGE_BYTES}")

    assert driver.wait() == 0, driver.log[-3000:]
    assert driver.status is not None
    assert driver.status.epoch >= _RECORDS // 10
    found = sorted(int((record.value or b"").split()[0]) for record in stage.read(sink.out))
    assert found == list(range(_RECORDS))


def test_epochs_grow_once_there_are_records_to_weigh(stage: Stage) -> None:
    source = stage.source("empty", {0: []})
    sink = stage.sink("empty", source, trigger={"every": "100ms"}, **_TEXT)
    driver = sink.start()
    driver.wait_until(lambda: driver.status is not None and driver.status.state == "running")

    stage.produce(source, ((0, "k", str(number)) for number in range(_MANY)))
    driver.wait_until(lambda: driver.has_passed({0: _MANY}))
    stage.produce(source, ((0, "k", str(number)) for number in range(_MANY, 2 * _MANY)))
    driver.wait_until(lambda: driver.has_passed({0: 2 * _MANY}))

    assert driver.stop() == 0
    assert "epochs hold at most 1,000,000 records from now on" in driver.log
    assert [int(record.value or b"") for record in stage.read(sink.out)] == list(range(2 * _MANY))
