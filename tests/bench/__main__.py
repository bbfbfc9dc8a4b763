"""Our sinks into Kafka beside Spark's own, which is at-least-once.

python -m tests.bench [--records 2000000] [--rounds 3]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.processes import unwind_on_signals
from tests.bench import topics
from tests.bench.arms import ARMS
from tests.bench.rounds import Results, Rounds, Stream, as_range, machine, make_source, print_drain

_EPOCHS = 8
_SMALL_EPOCH_ROWS = 8
_SMALL_EPOCHS = 25


def main() -> None:
    """Run the whole benchmark."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="*", default=[100, 1024], metavar="BYTES")
    arguments = parser.parse_args()
    unwind_on_signals()
    print(machine("Kafka 4.1.2, one broker on the same machine"), flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="bench") as name,
        KafkaBroker.start(Path(name) / "kafka", lasting=True) as broker,
    ):
        place = topics.Topics(broker.bootstrap)
        rounds = Rounds(broker.bootstrap, Path(name), arguments.rounds, ARMS, place)
        for size in arguments.sizes:
            source = _source(broker, f"source-{size}", arguments.records, size)
            title = f"{arguments.records:,} records of {size} bytes, {topics.PARTITIONS} partitions"
            stream = Stream(source, arguments.records, arguments.records // _EPOCHS)
            print_drain(title, rounds.run(stream))
            topics.delete(broker.bootstrap, source)
        rows = _SMALL_EPOCH_ROWS * _SMALL_EPOCHS
        source = _source(broker, "source-small", rows, 100)
        _print_small(rounds.run(Stream(source, rows, _SMALL_EPOCH_ROWS)))


def _source(broker: KafkaBroker, topic: str, records: int, value_bytes: int) -> str:
    values = topics.random_values(value_bytes)
    return make_source(broker.bootstrap, topic, values, records, topics.PARTITIONS)


def _print_small(results: Results) -> None:
    print(f"\nepochs of {_SMALL_EPOCH_ROWS} rows; medians over the rounds (lowest to highest)\n")
    print("| arm | seconds per epoch, warm | first epoch, s |")
    print("|---|---|---|")
    for name, figures in results.items():
        cells = [
            as_range([f.median_seconds for f in figures], ".3f"),
            as_range([f.first_seconds for f in figures], ".1f"),
        ]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
