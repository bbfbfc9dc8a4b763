"""What a benchmark prints: a line for each run as it ends, tables at its end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tests.bench.peers import targets
from tests.bench.peers.arms import SPARK
from tests.bench.peers.figures import Audit, Figures, Latency, Spread
from tests.bench.peers.latency import Rate
from tests.bench.peers.plan import LATENCY, Case, Plan
from tests.bench.peers.results import Results, Run, worst
from tests.bench.peers.soak import Footprint

_MB = 1024 * 1024
_HEADS = (
    "rows/s, warm",
    "of Spark's own",
    "processor s per million, warm",
    "the broker's",
    "the arm's, whole run",
    "whole run, s",
    "first visible row, s",
    "memory, MB",
    "control records",
    "missing",
    "doubled",
    "wrong",
    "out of order",
    "others' load",
)


def line(run: Run) -> str:
    """Return what one run showed."""
    match run.figures:
        case Figures() as figures:
            what = _drained(figures)
        case Latency() as late:
            what = _late(late)
        case None:
            what = f"FAILED: {run.failure}" if run.failure else "done"
    disturbed = "DISTURBED, does not count: " if run.figures and run.figures.is_disturbed else ""
    return f"  {run.case}, round {run.number}, {run.arm}: {disturbed}{what}{_noted(run)}"


def _drained(figures: Figures) -> str:
    warm = _one(figures.cpu_per_million, ".1f")
    parts = [
        f"{_one(figures.rows_per_second, ',.0f')} rows/s",
        f"processor s per million: {figures.whole_cpu_per_million:.1f}, warm {warm}",
        f"first row after {_one(figures.first_row_seconds, '.1f')} s",
        f"all after {figures.whole_seconds:.1f} s",
        f"{figures.memory_bytes / _MB:,.0f} MB",
        _counts(figures.audit),
        f"others' load {figures.other_load:.0%}",
    ]
    return "; ".join(parts)


def _counts(audit: Audit | None) -> str:
    if audit is None:
        return "nothing written"
    if audit.is_right:
        return f"{audit.rows:,} rows, all right"
    return (
        f"WRONG: {audit.rows:,} rows, {audit.missing:,} missing, {audit.doubled:,} doubled, "
        f"{audit.wrong:,} wrong, {audit.out_of_order:,} out of order"
    )


def _late(late: Latency) -> str:
    wrong = f", WRONG: {late.missing:,} missing" if late.missing else ""
    doubled = f", {late.doubled:,} doubled" if late.doubled else ""
    return (
        f"p50 {late.p50_ms:,.0f} ms, p99 {late.p99_ms:,.0f} ms; {late.cpu_share:.0%} of the processors; "
        f"first row after {late.first_row_seconds:.1f} s{wrong}{doubled}; others' load {late.other_load:.0%}"
    )


def _noted(run: Run) -> str:
    return f" ({'; '.join(run.notes)})" if run.notes else ""


def tables(plan: Plan, results: Results) -> Iterator[str]:
    """Give all tables, what failed, and the targets."""
    for case in plan.cases:
        if results.arms(case.title):
            yield from ("", f"## {case.title}", "", f"{case.detail}; medians (lowest to highest)", "")
            yield from _case(case, results)
            yield from _starts(case, results)
    if results.arms(LATENCY):
        yield from ("", "## produced to visible", "", _flow(plan.rate), "")
        yield from _latencies(results)
    yield from _of_sinks(plan, results)
    yield from ("", "## targets", "", *targets.lines(results))
    if plan.told:
        yield from ("", plan.told)
    for run in results.disturbed():
        yield from ("", f"DISTURBED, does not count: {run.case}, round {run.number}, {run.arm}")
    for run in results.failures():
        yield from ("", f"FAILED: {run.case}, round {run.number}, {run.arm}", run.failure)


def footprint(found: Footprint) -> str:
    """Return one look at a long run."""
    return (
        f"after {found.minutes:,.0f} minutes, {found.epoch:,} epochs: {found.memory_bytes / _MB:,.0f} MB, "
        f"{found.threads} threads, {found.files} open files, {found.sockets} of them sockets"
    )


def _of_sinks(plan: Plan, results: Results) -> Iterator[str]:
    """Give what was found of our sinks alone."""
    if results.bytes_after:
        yield ""
    for epochs in plan.epochs if results.bytes_after else ():
        held = _spread([found[epochs] / _MB for found in results.bytes_after], ",.0f")
        yield f"memory of a driver of ours after {epochs:,} epochs, garbage left out: {held} MB"
    if results.scale:
        yield from ("", "## ours, by partitions of the source, at 1,000 rows/s", "")
        yield "| partitions | first visible row, s | an epoch, s | memory, MB |"
        yield "|---|---|---|---|"
    for partitions, found in results.scale.items():
        times = f"{found.first_row_seconds:.1f} | {found.epoch_seconds:.2f}"
        yield f"| {partitions:,} | {times} | {found.memory_bytes / _MB:,.0f} |"
    if results.look_ups:
        took = _spread(results.look_ups, ".2f")
        yield from ("", f"a sink's progress in a topic of {plan.sharing:,} sinks is found within {took} s")
    if results.footprints:
        yield from ("", "## a long run of ours, 2,000 rows/s", "", *map(footprint, results.footprints))


def _starts(case: Case, results: Results) -> Iterator[str]:
    """Give a table of starts by part, of the arms whose parts are known."""
    found = {
        arm: [run.start for run in results.counting(case.title, arm)] for arm in results.arms(case.title)
    }
    known = {arm: starts for arm, starts in found.items() if any(starts)}
    parts = list(dict.fromkeys(part for starts in known.values() for start in starts for part in start))
    if not parts:
        return
    yield from ("", f"| seconds of the start | {' | '.join(parts)} |", f"|{'---|' * (len(parts) + 1)}")
    for arm, starts in known.items():
        cells = [_spread([start.get(part) for start in starts], ".1f") for part in parts]
        yield f"| {arm} | {' | '.join(cells)} |"


def _case(case: Case, results: Results) -> Iterator[str]:
    yield f"| arm | {' | '.join(_HEADS)} |"
    yield f"|{'---|' * (len(_HEADS) + 1)}"
    for arm in results.arms(case.title):
        yield f"| {arm} | {' | '.join(_cells(case, arm, results))} |"


def _cells(case: Case, arm: str, results: Results) -> Iterator[str]:
    runs, ended = results.counting(case.title, arm), results.drained(case.title, arm)
    against = results.ratio(case.title, (arm, SPARK.name), targets.rate)
    yield _spread([run.rows_per_second for run in runs], ",.0f")
    yield against.show(".2f") if against else "-"
    yield _spread([run.cpu_per_million for run in runs], ".1f")
    yield _spread([run.broker_cpu_per_million for run in runs], ".1f")
    yield _spread([run.whole_cpu_per_million for run in runs], ".1f")
    yield _spread([run.whole_seconds for run in runs], ".1f")
    yield _spread([run.first_row_seconds for run in runs], ".1f")
    yield _spread([run.memory_bytes / _MB for run in runs], ",.0f")
    yield _spread([run.control_records if run.audit else None for run in runs], ",.0f")
    for count in ("missing", "doubled", "wrong", "out_of_order"):
        found = worst(ended, lambda run, name=count: getattr(run.audit, name, None))  # type: ignore[misc]
        yield "-" if found is None else f"{found:,}"
    yield _spread([run.other_load for run in ended], ".0%")


def _latencies(results: Results) -> Iterator[str]:
    yield (
        "| arm | p50, ms | p90, ms | p99, ms | at most, ms | processors | the broker's | others' "
        "| first visible row, s | missing | doubled |"
    )
    yield f"|{'---|' * 11}"
    for arm in results.arms(LATENCY):
        runs, ended = results.counting_late(arm), results.late(arm)
        cells = [
            *(
                _spread([getattr(run, f"{name}_ms") for run in runs], ",.0f")
                for name in ("p50", "p90", "p99", "max")
            ),
            *(_spread([getattr(run, name) for run in runs], ".0%") for name in ("cpu_share", "broker_share")),
            _spread([run.other_load for run in ended], ".0%"),
            _spread([run.first_row_seconds for run in runs], ".1f"),
            *(
                _spread([float(getattr(run, name)) for run in ended], ",.0f")
                for name in ("missing", "doubled")
            ),
        ]
        yield f"| {arm} | {' | '.join(cells)} |"


def _flow(rate: Rate) -> str:
    flow = f"{rate.rows_per_second:,} rows/s for {rate.seconds} s behind {rate.warm_up_seconds} s"
    return f"{flow}, 100 B, 4 partitions; medians (lowest to highest)"


def _spread(values: Iterable[float | None], form: str) -> str:
    found = Spread.of(values)
    return found.show(form) if found else "-"


def _one(value: float | None, form: str) -> str:
    return "-" if value is None else f"{value:{form}}"
