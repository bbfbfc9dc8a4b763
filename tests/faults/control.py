"""The control: Spark's own Kafka sink under the same kills."""

from __future__ import annotations

import time
from pathlib import Path

from airflow_provider_sinks.core.errors import ExitCode
from tests.faults import checker, topics
from tests.faults.checker import Verdict
from tests.faults.driver import Process, submit
from tests.faults.feed import Feed
from tests.faults.parts import Part
from tests.faults.world import World, pause

JOB = Path(__file__).with_name("at_least_once_job.py")
PARTITIONS = 3
_ROWS_PER_ROUND = 1200
_FIRST_ROWS_SECONDS = 60.0
_DRAIN_SECONDS = 300.0
_SEQ = "CAST(get_json_object(CAST(value AS STRING), '$.seq') AS BIGINT)"


def at_least_once(world: World) -> Verdict:
    """Kill Spark's own sink as often as ours, then let it end, and judge its output."""
    random = world.random("control")
    feed, target = world.feed("control", PARTITIONS), world.topic("control-target", PARTITIONS)
    folder = world.folder / "control"
    for number in range(world.rounds + 1):
        feed.append(_ROWS_PER_ROUND)
        process = _start(world, feed, target, folder, number)
        _wait_for_rows(world, process, target)
        time.sleep(random.uniform(0, 1))
        process.kill(Part.DRIVER)
    _drain(world, feed, target, folder)
    return checker.judge(topics.read(world.client, target), feed.rows)


def _wait_for_rows(world: World, process: Process, target: str) -> None:
    before = topics.end_offsets(world.client, target)
    process.wait_until(lambda: topics.end_offsets(world.client, target) != before, _FIRST_ROWS_SECONDS)


def _drain(world: World, feed: Feed, target: str, folder: Path) -> None:
    """Let it end by itself. Spark 4.1.1 fails once more after it has repeated an epoch (SPARK-55271)."""
    (folder / "stop").touch()
    for number in range(world.rounds + 1, world.rounds + 4):
        process = _start(world, feed, target, folder, number)
        code = process.wait(_DRAIN_SECONDS)
        if code == ExitCode.OK:
            return
        assert "KafkaMicroBatchStream$.metrics" in process.log, process.log[-3000:]
    raise AssertionError("it did not end")


def _start(world: World, feed: Feed, target: str, folder: Path, number: int) -> Process:
    bootstrap, checkpoint, stop = (
        world.broker.admin_bootstrap,
        str(folder / "checkpoint"),
        str(folder / "stop"),
    )
    arguments = [bootstrap, feed.topic, target, checkpoint, pause(f"IF({_SEQ} % 4 = 0, 2, 0)"), stop]
    process = submit("spark", folder / f"run-{number}", "--master", "local[2,4]", str(JOB), *arguments)
    world.processes.append(process)
    return process
