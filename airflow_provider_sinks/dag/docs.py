"""The page of a sink's DAG in the UI (``doc_md``).

Where rows come from and go, what is promised, and what a start does when topics are missing. The last is
read from the decision table, never told twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from airflow_provider_sinks.core.decision.classify import ProgressState as P
from airflow_provider_sinks.core.decision.classify import ResourceState as R
from airflow_provider_sinks.core.decision.classify import WitnessState as W
from airflow_provider_sinks.core.decision.reasons.reason import Reason
from airflow_provider_sinks.core.decision.ruling import Ruling
from airflow_provider_sinks.core.decision.table import DECISIONS
from airflow_provider_sinks.core.spec.durations import format_duration
from airflow_provider_sinks.core.spec.sink import SinkSpec, Writers


@dataclass(frozen=True)
class Row:
    """What a reader sees as one case, and the cells of the decision table behind it, which agree."""

    progress: str
    data: str
    states: tuple[P, ...]
    topics: tuple[R, ...]
    witness: tuple[W, ...]

    @property
    def cells(self) -> tuple[tuple[P, R, W], ...]:
        """The keys of the decision table that this row stands for."""
        return tuple(product(self.states, self.topics, self.witness))

    @property
    def verdict(self) -> str:
        """What a start does in this case."""
        cell = DECISIONS[self.cells[0]]
        return f"**refuses**: {cell.brief()}" if isinstance(cell, Reason) else _VERDICTS[cell]


_EVERY = tuple(R)
_THERE = (R.PRESENT, R.GREW, R.REPLACED)
_SILENT, _AHEAD, _TARGET = (W.SILENT,), (W.AHEAD,), (W.TARGET,)
_NOT_AHEAD = (*_SILENT, *_TARGET)
_RECORDED = (P.UNWRITTEN, P.WRITTEN)

ROWS = (
    Row("not readable", "any", (P.UNKNOWN,), _EVERY, tuple(W)),
    Row("missing, or without a record of the sink", "not visible", (P.NONE,), (R.UNKNOWN,), _SILENT),
    Row("missing, or without a record of the sink", "missing", (P.NONE,), (R.MISSING,), _SILENT),
    Row("missing, or without a record of the sink", "there", (P.NONE,), _THERE, _SILENT),
    Row("lost, and Airflow remembers rows", "any", (P.NONE, P.EMPTIED), _EVERY, _AHEAD),
    Row("lost, and the broker remembers commits", "any", (P.NONE,), _EVERY, _TARGET),
    Row("its records are gone", "any", (P.EMPTIED,), _EVERY, _NOT_AHEAD),
    Row("some of its records are gone", "any", (P.IN_PART,), _EVERY, _NOT_AHEAD),
    Row("no rows written yet", "missing", (P.UNWRITTEN,), (R.MISSING,), _NOT_AHEAD),
    Row("no rows written yet", "another one", (P.UNWRITTEN,), (R.REPLACED,), _NOT_AHEAD),
    Row("rows written", "missing", (P.WRITTEN,), (R.MISSING,), _NOT_AHEAD),
    Row("rows written", "another one", (P.WRITTEN,), (R.REPLACED,), _NOT_AHEAD),
    Row("older than Airflow remembers", "any", (P.IN_PART, *_RECORDED), _EVERY, _AHEAD),
    Row("there", "not visible", _RECORDED, (R.UNKNOWN,), _NOT_AHEAD),
    Row("there", "the same", _RECORDED, (R.PRESENT,), _NOT_AHEAD),
    Row("there", "the same, with more partitions", _RECORDED, (R.GREW,), _NOT_AHEAD),
)
"""Every cell of the decision table, in the words and the order of a reader."""

_VERDICTS: dict[Ruling, str] = {
    Ruling.WAIT: "**waits**, then fails with what it could not see",
    Ruling.CREATE: "**makes** what is missing and goes on",
    Ruling.TAKE: "**makes** the progress topic and goes on; says how many records were there",
    Ruling.ADOPT: "**takes** it and goes on",
    Ruling.GO_ON: "**goes on** where the records end",
    Ruling.GREW: "**goes on**; keys move",
}


def dag_page(spec: SinkSpec) -> str:
    """Return the page of a sink's DAG, in Markdown."""
    return "\n".join(
        [
            f"Sink **{spec.name}**, {promise(spec)}.",
            "",
            *_facts(spec),
            "",
            *_guarantee(spec),
            "",
            "| progress topic | data topic | a start |",
            "|---|---|---|",
            *(f"| {row.progress} | {row.data} | {row.verdict} |" for row in ROWS),
            "",
            "A refusal prints its ways on, each with a code. Trigger the DAG with one as *Accept code*.",
            *_how_to_stop(spec),
        ]
    )


def promise(spec: SinkSpec) -> str:
    """Return whose guarantee holds, in two or three words."""
    return "as Spark guarantees" if spec.engine_guarantee else "exactly once"


def _facts(spec: SinkSpec) -> Iterator[str]:
    source = spec.source.kafka
    yield f"- source: topic `{source.topic}` of connection `{source.connection}`"
    for name, lookup in spec.lookups.items():
        table = lookup.postgres
        yield f"- lookup `{name}`: table `{table.table}` of connection `{table.connection}`"
    yield from spec.told()
    every = spec.trigger.every
    yield "- runs: " + (
        "takes what is there, then ends" if every is None else f"an epoch every {format_duration(every)}"
    )


def _guarantee(spec: SinkSpec) -> Iterator[str]:
    if spec.engine_guarantee:
        yield spec.engine_guarantee
        return
    yield "Every source row is written exactly once, as a reader with `read_committed` sees it,"
    if spec.writer_mode is Writers.PER_PARTITION:
        yield "also after a crash, with changed lookups, or with a lost checkpoint. Each source partition"
        yield "becomes visible by itself (`writers: per_partition`)."
    else:
        state = "" if spec.shape.stateful else ", or with a lost checkpoint"
        yield f"also after a crash{state}. Each epoch becomes visible as a whole (`writers: single`)."


def _how_to_stop(spec: SinkSpec) -> Iterator[str]:
    if not spec.trigger.available_now:
        yield "To stop the sink, pause the DAG and then end the task; unpausing starts it again."
