"""What the project wants to reach against its peers, and where it stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from tests.bench.peers import arms, plan
from tests.bench.peers.figures import Figures, Latency, Spread
from tests.bench.peers.plan import LATENCY, Regime
from tests.bench.peers.results import Results
from tests.bench.peers.workloads import Workload

Figure = Callable[[Figures | Latency], float | None]


@dataclass(frozen=True)
class Target:
    """One line of the table.

    :param before: what was measured when the targets were set, as text: some lines have two figures.
    :param must: what must be reached; for each figure one.
    :param aim: what is aimed at.
    :param more_is_better: whether a larger ratio is the better one.
    :param found: takes our figures, as ratios, out of results.
    """

    measure: str
    before: str
    must: tuple[float, ...]
    aim: tuple[float, ...]
    more_is_better: bool
    found: Callable[[Results], Sequence[Spread | None]]

    def reached(self, figures: Sequence[Spread | None]) -> str:
        """Say which of its two marks the medians reach; the worse of two figures counts."""
        if not all(figures):
            return "not measured"
        medians = [figure.median for figure in figures if figure]
        if self._holds(medians, self.aim):
            return "aim"
        return "must" if self._holds(medians, self.must) else "not reached"

    def _holds(self, medians: Sequence[float], marks: Sequence[float]) -> bool:
        pairs = zip(medians, marks, strict=True)
        return all(one >= mark if self.more_is_better else one <= mark for one, mark in pairs)


def rate(figures: Figures | Latency) -> float | None:
    """Return the warm rows per second."""
    return figures.rows_per_second if isinstance(figures, Figures) else None


def _whole_cpu(figures: Figures | Latency) -> float | None:
    return figures.whole_cpu_per_million if isinstance(figures, Figures) else None


def _first_row(figures: Figures | Latency) -> float | None:
    return figures.first_row_seconds


def _p50(figures: Figures | Latency) -> float | None:
    return figures.p50_ms if isinstance(figures, Latency) else None


def _p99(figures: Figures | Latency) -> float | None:
    return figures.p99_ms if isinstance(figures, Latency) else None


def _cpu_share(figures: Figures | Latency) -> float | None:
    return figures.cpu_share if isinstance(figures, Latency) else None


def _title(regime: Regime, workload: Workload, partitions: int = 4) -> str:
    return plan.Case(workload, partitions, regime, 0, 0, 0, ()).title


def _against(
    case: str, *others: str, figures: Sequence[Figure], ours: str = arms.OURS.name
) -> Callable[[Results], Sequence[Spread | None]]:
    """Return what takes ratios: each figure, against each of the others."""
    return lambda results: [
        results.ratio(case, (ours, other), figure) for other in others for figure in figures
    ]


def _archived(figure: Figure) -> Callable[[Results], Sequence[Spread | None]]:
    """Return what takes the ratio of a driver that starts with an archive of classes."""
    return _against(_COLD, _SPARK, figures=[figure], ours=arms.OURS_ARCHIVED.name)


def _grown(results: Results) -> Sequence[Spread | None]:
    return [Spread.of(found[max(found)] / found[min(found)] for found in results.bytes_after)]


_SPARK, _FLINK, _MIRROR = arms.SPARK.name, arms.FLINK.name, arms.MIRROR_TUNED.name
_COLD = _title(Regime.COLD, plan.SMALL)
_SMALL = _title(Regime.STEADY, plan.SMALL)
_LARGE = _title(Regime.STEADY, plan.LARGE)
_SQL = _title(Regime.STEADY, plan.SQL)
_BEHIND_ARCHIVE = "the same behind `airflow sinks class-archive`"
_COLD_CPU = Target(
    "cold: processor s for the whole run, against Spark's own",
    "1.14",
    (0.8,),
    (0.5,),
    more_is_better=False,
    found=_against(_COLD, _SPARK, figures=[_whole_cpu]),
)
_FIRST_ROW = Target(
    "start to first visible row, against Spark's own",
    "1.3",
    (1.0,),
    (0.7,),
    more_is_better=False,
    found=_against(_COLD, _SPARK, figures=[_first_row]),
)
TARGETS = (
    Target(
        "steady rows/s, copy, 100 B, per_partition, against Spark's own",
        "0.95",
        (1.1,),
        (1.5,),
        more_is_better=True,
        found=_against(_SMALL, _SPARK, figures=[rate]),
    ),
    Target(
        "the same, 1 KB",
        "unknown",
        (1.0,),
        (1.2,),
        more_is_better=True,
        found=_against(_LARGE, _SPARK, figures=[rate]),
    ),
    Target(
        "steady, JSON, WHERE and lookup, JSON, against Spark's own",
        "unknown",
        (0.95,),
        (1.1,),
        more_is_better=True,
        found=_against(_SQL, _SPARK, figures=[rate]),
    ),
    Target(
        "steady, copy, against Flink exactly-once, same rows per commit",
        "0.39",
        (0.7,),
        (1.1,),
        more_is_better=True,
        found=_against(_SMALL, _FLINK, figures=[rate]),
    ),
    Target(
        "the same, SQL plan, against Flink SQL",
        "unknown",
        (0.7,),
        (1.0,),
        more_is_better=True,
        found=_against(_SQL, _FLINK, figures=[rate]),
    ),
    _COLD_CPU,
    replace(_COLD_CPU, measure=_BEHIND_ARCHIVE, found=_archived(_whole_cpu)),
    Target(
        "cold: rows/s of that run, against Flink / MirrorMaker 2 tuned",
        "0.34 / 0.57",
        (0.7, 1.0),
        (1.0, 1.5),
        more_is_better=True,
        found=_against(_COLD, _FLINK, _MIRROR, figures=[rate]),
    ),
    _FIRST_ROW,
    replace(_FIRST_ROW, measure=_BEHIND_ARCHIVE, found=_archived(_first_row)),
    Target(
        "the same with every: 100ms",
        "2.8",
        (1.0,),
        (0.7,),
        more_is_better=False,
        found=_against(LATENCY, _SPARK, figures=[_first_row], ours=arms.OURS_100MS.name),
    ),
    Target(
        "visible latency p50 / p99, every: 100ms, against Spark's own",
        "2.4 / 2.0",
        (1.2, 1.3),
        (0.8, 1.0),
        more_is_better=False,
        found=_against(LATENCY, _SPARK, figures=[_p50, _p99], ours=arms.OURS_100MS.name),
    ),
    Target(
        "processor time at 1,000 rows/s, every: 1s, against Spark's own",
        "unknown",
        (1.1,),
        (0.9,),
        more_is_better=False,
        found=_against(LATENCY, _SPARK, figures=[_cpu_share], ours=arms.OURS_1S.name),
    ),
    Target(
        "driver's memory after 1,000 epochs against after 100",
        "unknown",
        (1.05,),
        (1.02,),
        more_is_better=False,
        found=_grown,
    ),
)


def lines(results: Results) -> Iterator[str]:
    """Give the table, with our figures beside each target."""
    yield "| measure | before | ours now | must reach | aim | reached |"
    yield "|---|---|---|---|---|---|"
    for target in TARGETS:
        figures = target.found(results)
        now = " / ".join(figure.show(".2f") if figure else "-" for figure in figures)
        must, aim = (" / ".join(f"{mark:g}" for mark in marks) for marks in (target.must, target.aim))
        cells = [target.measure, target.before, now, must, aim, target.reached(figures)]
        yield f"| {' | '.join(cells)} |"
