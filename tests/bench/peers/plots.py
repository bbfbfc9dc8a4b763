"""Pictures of results: rows per second and processor time of a case, and latencies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.bench.peers.figures import Spread
from tests.bench.peers.plan import LATENCY
from tests.bench.peers.results import Results

_OURS, _OTHERS = "#0b6e4f", "#9aa5b1"
_INCHES_PER_ARM = 0.38


def draw(results: Results, cases: Sequence[str], folder: Path) -> Iterator[Path]:
    """Draw what was measured and give the files.

    :param cases: the titles of the cases.
    :param folder: which exists.
    """
    for case in cases:
        if arms := [arm for arm in results.arms(case) if results.counting(case, arm)]:
            rates = [Spread.of(run.rows_per_second for run in results.counting(case, arm)) for arm in arms]
            used = [
                Spread.of(run.whole_cpu_per_million for run in results.counting(case, arm)) for arm in arms
            ]
            panels = [("rows per second, warm", rates), ("processor s per million rows, whole run", used)]
            yield _bars(case, arms, panels, folder / f"bench-{_plain(case)}.png")
    if arms := [arm for arm in results.arms(LATENCY) if results.counting_late(arm)]:
        panels = [
            (
                f"{name}, ms",
                [Spread.of(getattr(run, f"{name}_ms") for run in results.counting_late(arm)) for arm in arms],
            )
            for name in ("p50", "p99")
        ]
        yield _bars("produced to visible at 1,000 rows/s", arms, panels, folder / "bench-latency.png")


def _bars(
    title: str, arms: Sequence[str], panels: Sequence[tuple[str, Sequence[Spread | None]]], file: Path
) -> Path:
    """Draw bars of medians with their ranges, one panel beside the other."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 1.2 + _INCHES_PER_ARM * len(arms)), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title)
    colours = [_OURS if arm.startswith("ours") else _OTHERS for arm in arms]
    for place, (label, spreads) in zip(figure.subplots(1, len(panels), sharey=True), panels, strict=True):
        known = [spread or Spread(0.0, 0.0, 0.0) for spread in spreads]
        ranges = [
            [one.median - one.lowest for one in known],
            [one.highest - one.median for one in known],
        ]
        place.barh(range(len(arms)), [one.median for one in known], xerr=ranges, color=colours, capsize=2)
        place.set_yticks(range(len(arms)), arms)
        place.set_xlabel(label)
        place.spines[["top", "right"]].set_visible(False)
    figure.axes[0].invert_yaxis()
    figure.savefig(file, dpi=110)
    return file


def _plain(title: str) -> str:
    words = "".join(letter if letter.isalnum() else " " for letter in title.lower()).split()
    return "-".join(words)
