"""Our sinks into Kafka beside Spark's own sink and its peers.

python -m tests.bench [--quick] [--rounds 3] [--scale 1.0] [--cases TEXT ...] [--arms TEXT ...] [--plots]
python -m tests.bench --soak 60
python -m tests.bench --told build/bench/FOLDER ...    the tables of runs that are over

Each arm runs alone, in turn, against one broker on this machine. Logs and figures stay in ``build/bench``.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from airflow_provider_sinks.local import jars
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.local.processes import unwind_on_signals
from tests.bench.peers import artifacts, plan, plots, report
from tests.bench.peers.bench import Bench
from tests.bench.peers.place import Place, fill_users
from tests.bench.peers.plan import Plan
from tests.bench.peers.results import Results
from tests.bench.peers.stored import stored
from tests.bench.peers.workloads import Enrich
from tests.bench.rounds import machine

_ROOT = Path(__file__).parents[2]
_RESULTS = _ROOT / "build" / "bench"
_IMAGES = _ROOT / "docs" / "images"
_AT_ONCE = {"log.segment.delete.delay.ms": "1000"}
"""What a run has written is deleted before the next one begins, and not a minute into it."""
_ALSO = (plan.LATENCY, plan.GROWTH, plan.SCALE, plan.SHARED)


def main() -> None:
    """Run the whole benchmark."""
    given = _arguments()
    chosen = _chosen(given)
    if given.told:
        _tell(given, chosen, stored(given.told))
        return
    unwind_on_signals()
    folder = _RESULTS / time.strftime("%Y%m%d-%H%M%S")
    folder.mkdir(parents=True)
    services = f"Kafka {jars.KAFKA_VERSION}, one broker on the same machine"
    _say(f"{machine(services)}\n{artifacts.versions()}")
    began = time.monotonic()
    with ExitStack() as stack:
        bench = Bench(_place(stack, folder, chosen), chosen, _say)
        try:
            bench.run()
        finally:
            _tell(given, chosen, bench.results)
            minutes = (time.monotonic() - began) / 60
            _say(f"\n{minutes:.1f} minutes; logs and figures of each run: {folder.relative_to(_ROOT)}")
    if not bench.results.all_right:
        raise SystemExit("some runs failed or were wrong; see above")


def _tell(given: argparse.Namespace, chosen: Plan, results: Results) -> None:
    """Print the tables, and draw."""
    for line in report.tables(chosen, results):
        _say(line)
    if given.plots:
        _IMAGES.mkdir(exist_ok=True)
        for file in plots.draw(results, [case.title for case in chosen.cases], _IMAGES):
            _say(f"drawn: {file.relative_to(_ROOT)}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round of short runs: ten minutes")
    parser.add_argument("--rounds", type=int, help="how often each arm runs")
    parser.add_argument("--scale", type=float, default=1.0, help="of all numbers of rows")
    parser.add_argument("--soak", type=float, default=0.0, metavar="MINUTES", help="nothing but a long run")
    for what, also in (("cases", f"; also: {', '.join(_ALSO)}"), ("arms", "")):
        these = f"only those whose names have one of these{also}"
        parser.add_argument(f"--{what}", nargs="+", default=[], metavar="TEXT", help=these)
    told = "the folders of runs that are over: nothing runs, they are told together"
    parser.add_argument("--told", type=Path, nargs="+", default=[], metavar="FOLDER", help=told)
    parser.add_argument("--plots", action="store_true", help="draw pictures into docs/images")
    return parser.parse_args()


def _chosen(given: argparse.Namespace) -> Plan:
    whole = plan.quick() if given.quick else plan.full()
    whole = replace(whole, rounds=given.rounds or whole.rounds, soak_minutes=given.soak)
    cases = given.cases or ([plan.SOAK] if given.soak else [])
    return whole.scaled(given.scale).with_cases(cases).with_arms(given.arms)


def _place(stack: ExitStack, folder: Path, chosen: Plan) -> Place:
    """Start what the runs share; its data is gone when all is over."""
    data = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench")))
    broker = stack.enter_context(KafkaBroker.start(data / "kafka", lasting=True, extra=_AT_ONCE))
    users = None
    if any(isinstance(case.workload, Enrich) for case in chosen.cases):
        users = stack.enter_context(Postgres.start(data / "postgres"))
        fill_users(users)
    return Place(broker, folder, users)


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()
