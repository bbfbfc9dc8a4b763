"""Runs tests in lanes side by side: much of their time they wait, for a JVM or an Airflow to start.

A lane is a pytest of its own with services of its own, so that nothing is shared. Lines come as they are
printed; what a lane has to say at its end (failures, summaries) is held back until all are over. The last
line adds up the closing lines of all.

    python -m tests.lanes            # all but the scenarios, the formats and what is long
    python -m tests.lanes long       # what is long: tests/long_tests.py
    python -m tests.lanes formats    # what sinks read and write beside JSON, and beside Kafka and Postgres

With ``--again`` a few tests that failed run once more behind all others, on services of their own: CI's
machine is at times slower than a test allows for. Who passes then is counted as ``rerun`` and named, with how
it failed: it is to be looked into, as some were right to fail.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType

import pytest

_HERE = Path("tests")
_CONTRACT = _HERE / "contract"
_SCENARIOS = _HERE / "live" / "scenarios"
_LONG = [
    _HERE / "faults" / f"test_{name}.py" for name in ("control", "windows", "server_kills", "lake_kills")
]
"""Take minutes: kills of Spark's own sink, to show that the fault tests can fail, of a sink with state, of a
database, and of sinks into Iceberg and Delta tables. ``make test-faults`` has them."""
_END = re.compile(r"^=+ (ERRORS|FAILURES|warnings summary|faults: .*|slowest .*|short test summary info) =+$")
_CLOSING = re.compile(r"^=+ (?P<what>.+ in [\d.]+s( \(.*\))?) =+$")
_COUNT = re.compile(r"(\d+) ([a-z]+)(?=,| in )")
_WIDTH = 80
_STACKS_OF_A_HANG = ("-o", "faulthandler_timeout=660")
"""Where all threads stand, told by C: also where Python stands still, and pytest's own limit with it."""
_FORMAT_LANES = 3
_AGAIN = "--again"
_AGAIN_MAX = 3
"""More failures than this are no chance."""
_MEMORY = "cache_dir=build/lane-{}"
"""Where a pytest keeps what failed in it."""
_FAILED = re.compile(r"^(?P<how>FAILED|ERROR) (?P<test>\S+::.+?)( - .*)?$")
_LEAVE_LONG, _ONLY_LONG = "--leave-long", "--only-long"


def formats() -> list[Path]:
    """The tests of targets, formats, messages and sources that few sinks have, in live sinks."""
    targets = ("files", "iceberg", "delta", "spark_formats", "evolution")
    messages = ("avro", "json_schema", "protobuf", "envelopes", "messages", "changes")
    others = (
        "changes",
        "debezium_reader",
        "java_registry",
        "delta_spark",
        "lake_refusals",
        "registered_json",
        "registered_protobuf",
        "schema_registry",
        "evolution_commands",
        "installed_target_commands",
        "schema_commands",
        "dead_letter_commands",
    )
    return [
        *_jobs(*targets, *messages),
        *_live(*others, "dead_letter_replay", "replayed_letters", "table_letter_replay"),
        *tables(),
    ]


def tables() -> list[Path]:
    """The contract of connectors for tables of Iceberg and Delta."""
    found = [*_CONTRACT.glob("test_iceberg*.py"), *_CONTRACT.glob("test_delta*.py")]
    others = (
        "moved_tables",
        "table_evolution",
        "object_store",
    )
    return [*sorted(found), *(_CONTRACT / f"test_{name}.py" for name in others)]


def waiting() -> list[Path]:
    """The tests that wait for most of their time, for what a silent or a dead broker lets them wait for.

    Behind them some that start drivers or processes of Airflow: this lane has the time.
    """
    jobs = ("silence", "exit_codes", "dead_letters", "refusals", "setup", "postgres")
    airflow = [_HERE / "airflow" / f"test_{name}.py" for name in ("checker", "orphans", "submit_on_cluster")]
    others = ("decisions", "source_log", "source_ends", "small_epochs", "wheel")
    return [*_live("kafka_client"), *_jobs(*jobs), *_live(*others), *airflow]


def contracts() -> list[Path]:
    """The contract of connectors, which waits for fenced writers to find out by whom; and others."""
    readers = ("row_producers", "epoch_bytes", "range_reader", "check_topics")
    return [_CONTRACT, *_live(*readers)]


def drivers() -> list[Path]:
    """The tests that start Spark drivers themselves.

    The fault tests come first: they need most of the processors, and the other lanes least in the beginning.
    """
    elsewhere = {*formats(), *waiting(), *contracts()}
    jobs = sorted(set(_HERE.glob("live/test_sink_job_*.py")) - elsewhere)
    commands = ("sink_commands", "postgres_commands", "table_refusals", "generations", "changed_specs")
    return [
        _HERE / "faults",
        *jobs,
        *_live("arrow_batches", "driver_log", "plan_sql", "json_values", *commands),
    ]


def all_others() -> list[str]:
    """The rest, whatever it is: a new file cannot be forgotten."""
    ignored = [_SCENARIOS, *formats(), *drivers(), *waiting(), *contracts()]
    folders = [_HERE / "unit", _HERE / "airflow", _HERE / "live"]
    return [*map(str, folders), *(f"--ignore={path}" for path in ignored)]


def _live(*names: str) -> list[Path]:
    return [_HERE / "live" / f"test_{name}.py" for name in names]


def _jobs(*names: str) -> list[Path]:
    return _live(*(f"sink_job_{name}" for name in names))


class Lane:
    """One pytest.

    :param arguments: which tests it runs.
    """

    def __init__(self, arguments: Iterable[str]) -> None:
        self.arguments = [*arguments]
        command = [sys.executable, "-m", "pytest", "--color=no", *_STACKS_OF_A_HANG, *self.arguments]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.last_words: list[str] = []
        self.second: Lane | None = None

    def follow(self) -> int:
        """Print what the tests print, and return the exit code of pytest."""
        with self._process as process:
            for line in process.stdout or ():
                if self.last_words or _END.match(line) or _CLOSING.match(line):
                    self.last_words.append(line.rstrip("\n"))
                else:
                    print(line, end="", flush=True)
        return process.returncode

    @property
    def closing(self) -> str:
        """What pytest counted, and in how many seconds; empty if it never said."""
        closing = next(filter(None, map(_CLOSING.match, reversed(self.last_words))), None)
        return closing["what"] if closing else ""

    @property
    def failed(self) -> list[tuple[str, str]]:
        """What failed: how it is counted, and the test by its id."""
        told = filter(None, map(_FAILED.match, self.last_words))
        return [(line["how"].lower(), line["test"]) for line in told]

    def again(self) -> Lane:
        """Run once more what failed, on services of its own."""
        self.second = Lane([*self.arguments, "--last-failed", "--last-failed-no-failures=none"])
        return self.second

    @property
    def passed_again(self) -> list[tuple[str, str]]:
        """What of :attr:`failed` has passed at a second try."""
        if self.second is None or not self.second.closing:
            return []
        tests = {test for _, test in self.second.failed}
        return [(how, test) for how, test in self.failed if test not in tests]

    def end(self) -> None:
        """Ask it to end in order, which stops its services."""
        (self.second or self)._process.terminate()


def closing_line(lanes: Sequence[Lane], seconds: float) -> str:
    """Return pytest's closing line for all lanes together."""
    counts: Counter[str] = Counter()
    for lane in lanes:
        for number, what in _COUNT.findall(lane.closing) or [(1, "error")]:
            counts[what.removesuffix("s") if what in {"errors", "warnings"} else what] += int(number)
        for how, _ in lane.passed_again:
            counts.update({how: -1, "passed": 1, "rerun": 1})
    order = ["failed", "passed", "error", "warning"]
    known = [what for what in (*order, *(counts.keys() - set(order))) if counts[what]]
    words = [f"{counts[what]} {what}{_plural(what, counts[what])}" for what in known]
    return f" {', '.join(words)} in {seconds:.2f}s ".center(_WIDTH, "=")


def _plural(what: str, number: int) -> str:
    return "s" if what in {"error", "warning"} and number > 1 else ""


def usual() -> list[list[str]]:
    """Return what each lane of ``make test`` runs."""
    return [[_LEAVE_LONG, *lane] for lane in _all()]


def of_long() -> list[list[str]]:
    """Return what each lane of ``make test-long`` runs."""
    return [[_ONLY_LONG, *lane] for lane in _all()]


def _all() -> list[list[str]]:
    fast_drivers = [*map(str, drivers()), *(f"--ignore={path}" for path in _LONG)]
    fast_contracts = [*map(str, contracts()), *(f"--ignore={path}" for path in tables())]
    return [all_others(), fast_drivers, [*map(str, waiting())], fast_contracts]


def of_formats() -> list[list[str]]:
    """Return what each lane of ``make test-formats`` runs: each third of the files."""
    files = [*map(str, formats())]
    return [files[number::_FORMAT_LANES] for number in range(_FORMAT_LANES)]


def rerun(lanes: Sequence[Lane]) -> list[int]:
    """Run once more what failed, and return the exit codes."""
    codes = []
    for lane in (lane for lane in lanes if lane.failed):
        second = lane.again()
        codes.append(second.follow())
        told = (f"passed at the second try: {test}" for _, test in lane.passed_again)
        print(*second.last_words, *told, sep="\n")
    return codes


def is_worth_a_second_try(lanes: Sequence[Lane], codes: Sequence[int]) -> bool:
    """Say whether all that went wrong are a few tests that failed."""
    ends = {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED}
    return set(codes) <= ends and 0 < sum(len(lane.failed) for lane in lanes) <= _AGAIN_MAX


def main(arguments: Sequence[str]) -> int:
    """Run all lanes; 0 when all tests passed."""
    started = time.monotonic()
    chosen = {"formats": of_formats, "long": of_long}.get(next(iter(arguments), ""), usual)
    lanes = [Lane([*tests, "-o", _MEMORY.format(number)]) for number, tests in enumerate(chosen())]

    def end(number: int, frame: FrameType | None) -> None:
        del number, frame
        for lane in lanes:
            lane.end()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # each lane gets Ctrl-C itself
    with ThreadPoolExecutor() as pool:
        codes = list(pool.map(Lane.follow, lanes))
    for lane in lanes:
        print("\n".join(line for line in lane.last_words if not _CLOSING.match(line)))
    if _AGAIN in arguments and is_worth_a_second_try(lanes, codes):
        codes = rerun(lanes)
    print(*(f"lane {number}: {lane.closing}" for number, lane in enumerate(lanes, start=1)), sep="\n")
    print(closing_line(lanes, time.monotonic() - started))
    return max(abs(code) for code in codes if code != pytest.ExitCode.NO_TESTS_COLLECTED or chosen is usual)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
