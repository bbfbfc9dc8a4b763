"""What must hold between the parts of a sink, each rule a function that yields problems.

A rule is asked only when the parts that it looks at are right in themselves, so that one mistake does not
show up twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from airflow_provider_sinks.core.errors import Problem, nearest
from airflow_provider_sinks.core.query.analysis import INTERNAL, SOURCE
from airflow_provider_sinks.core.query.sql import SqlError
from airflow_provider_sinks.core.spec.ddl import columns_of
from airflow_provider_sinks.core.spec.parts import Format
from airflow_provider_sinks.core.spec.problems import UnfitError

if TYPE_CHECKING:
    from airflow_provider_sinks.core.spec.sink import SinkSpec

SQL_BYTES_MAX = 900_000
"""A start writes the whole sink into its progress record, and clients and topics take 1 MB by default."""


def check(spec: SinkSpec, broken: frozenset[str]) -> Iterator[Problem]:
    """Give the problems between the parts that are not broken in themselves."""
    for needs, rule in RULES:
        if not broken & needs:
            yield from rule(spec)


def _schema(spec: SinkSpec) -> Iterator[Problem]:
    kafka, where = spec.source.kafka, "source.kafka.schema"
    if kafka.format is Format.JSON and kafka.schema_ is None:
        hint = 'such as schema: "viewtime long, userid string"; or format: text, or bytes'
        yield Problem(where, "is missing: format json needs one", hint)
    elif kafka.format is not Format.JSON and kafka.schema_ is not None:
        yield Problem(where, f"does not go with format {kafka.format}", "its one column is named value")
    elif kafka.schema_ is not None:
        try:
            columns = columns_of(kafka.schema_)
        except UnfitError as unfit:
            yield Problem(where, str(unfit), unfit.hint)
        else:
            for name in columns:
                if name.lower().startswith(INTERNAL):
                    yield Problem(where, f"column {name!r}: names with {INTERNAL} are the sink's own")


def _required(spec: SinkSpec) -> Iterator[Problem]:
    kafka, where = spec.source.kafka, "source.kafka.required"
    if kafka.required and kafka.format is not Format.JSON:
        yield Problem(where, f"does not go with format {kafka.format}", "only JSON has fields; leave it out")
    elif spec.source_columns is not None:
        for index, name in enumerate(kafka.required or ()):
            yield from _known(f"{where}[{index}]", name, spec.source_columns, "the schema")


def _one_way_to_select(spec: SinkSpec) -> Iterator[Problem]:
    if spec.query is not None:
        for name in ("select", "where"):
            if getattr(spec, name) is not None:
                yield Problem(name, "does not go with query", "write it into the query")


def _sql(spec: SinkSpec) -> Iterator[Problem]:
    if spec.query is not None and (spec.select or spec.where):
        return
    try:
        plan = spec.plan
    except SqlError as error:
        yield error.at("where" if spec.select is None else "select")
        return
    for problem in plan.problems:
        yield Problem(_option_of(spec, problem), problem.what, problem.hint)
    read = {name.lower() for name in plan.lookups}
    for name in spec.lookups:
        if not plan.problems and name.lower() not in read:
            yield Problem(f"lookups.{name}", "is never read", f"JOIN {name} in the query, or leave it out")


def _columns(spec: SinkSpec) -> Iterator[Problem]:
    plan = spec.readable_plan
    two_ways = spec.query is not None and (spec.select or spec.where)
    if plan is not None and not two_ways and next(_schema(spec), None) is None:
        for problem in plan.unknown_columns:
            yield Problem(_option_of(spec, problem), problem.what, problem.hint)


def _length(spec: SinkSpec) -> Iterator[Problem]:
    texts = {"query": spec.query or "", "select": "".join(spec.select or ()), "where": spec.where or ""}
    for name, text in texts.items():
        if (size := len(text.encode())) > SQL_BYTES_MAX:
            what = f"is {size:,} bytes long, and each start writes it into a record of at most 1,000,000"
            yield Problem(name, what, f"at most {SQL_BYTES_MAX:,}; join a lookup instead of listing values")


def _option_of(spec: SinkSpec, problem: Problem) -> str:
    """Name the option that a problem of the SQL stands in."""
    if spec.query is not None:
        return "query"
    return "where" if problem.where == "where" else f"select{problem.where}"


def _lookup_names(spec: SinkSpec) -> Iterator[Problem]:
    seen: dict[str, str] = {SOURCE: SOURCE}
    for name in spec.lookups:
        if name.lower() in seen:
            yield Problem(f"lookups.{name}", f"is named as {seen[name.lower()]!r}", "choose another name")
        if name.lower().startswith(INTERNAL):
            yield Problem(f"lookups.{name}", f"names with {INTERNAL} are the sink's own")
        seen[name.lower()] = name


def _row_wise(spec: SinkSpec) -> Iterator[Problem]:
    plan = spec.readable_plan
    if plan is None or plan.problems or plan.row_wise:
        return
    clauses = "; ".join(str(obstacle) for obstacle in plan.obstacles)
    if spec.writers == "per_partition":
        hint = "leave writers out, or write writers: single"
        yield Problem("writers", f"per_partition needs a row-wise query, but it has {clauses}", hint)
    if not spec.target.kafka.key:
        what = "a stateful query needs one" if plan.stateful else "a query that is not row-wise needs one"
        names = ", ".join(o.clause for o in plan.obstacles)
        hint = f"the source record's key cannot pass through {names}; name the columns of the key"
        yield Problem("target.kafka.key", f"is missing: {what}", hint)


def _state(spec: SinkSpec) -> Iterator[Problem]:
    plan, watermark = spec.readable_plan, spec.source.kafka.watermark
    if plan is None or plan.problems:
        return
    if spec.output_mode == "append" and plan.stateful and watermark is None:
        hint = "add source.kafka.watermark, or write output_mode: update"
        yield Problem("output_mode", "append on a stateful query needs a watermark", hint)
    if watermark is not None and not plan.stateful:
        yield Problem(
            "source.kafka.watermark", "is for stateful queries, and this one is not", "leave it out"
        )


def _refresh(spec: SinkSpec) -> Iterator[Problem]:
    plan = spec.readable_plan
    if plan is None or plan.problems or plan.row_wise:
        return
    for name in plan.lookups:
        if spec.lookups[name].postgres.refresh is not None:
            what = "only a row-wise query reads its lookups again while it runs"
            yield Problem(f"lookups.{name}.postgres.refresh", what, "leave it out: read once, at the start")


def _watermark_column(spec: SinkSpec) -> Iterator[Problem]:
    watermark, columns = spec.source.kafka.watermark, spec.source_columns
    if watermark is not None and columns is not None:
        yield from _known("source.kafka.watermark.column", watermark.column, columns, "the source")


def _value(spec: SinkSpec) -> Iterator[Problem]:
    kafka, where = spec.target.kafka, "target.kafka"
    if kafka.format is not Format.JSON and kafka.tombstones:
        what = f"is for format json: in {kafka.format} a null value is a tombstone"
        yield Problem(f"{where}.tombstones", what, "leave it out")
    elif kafka.tombstones and kafka.value is not None:
        yield Problem(
            f"{where}.tombstones", "does not go with value: a null value is a tombstone", "leave it out"
        )
    if kafka.value is not None and kafka.value in kafka.key:
        yield Problem(f"{where}.value", f"{kafka.value!r} is the key already")
    if len(set(kafka.key)) < len(kafka.key):
        yield Problem(f"{where}.key", "names a column twice")


def _output_columns(spec: SinkSpec) -> Iterator[Problem]:
    plan, kafka = spec.readable_plan, spec.target.kafka
    if plan is None or plan.problems or plan.unknown_columns or plan.columns is None:
        return
    for index, name in enumerate(kafka.key):
        yield from _known(f"target.kafka.key[{index}]", name, plan.columns, "the output")
    if kafka.value is not None:
        yield from _known("target.kafka.value", kafka.value, plan.columns, "the output")
    elif kafka.format is not Format.JSON:
        values = [name for name in plan.columns if name not in kafka.key]
        if len(values) != 1:
            what = f"{kafka.format} needs one column for the value, but there are {len(values)}"
            names = f"of {', '.join(values)}" if values else "of the output"
            yield Problem("target.kafka.format", what, f"name one {names} by value")


def _known(where: str, name: str, columns: tuple[str, ...], whose: str) -> Iterator[Problem]:
    if name not in columns:
        hint = nearest(name, columns) or f"columns: {', '.join(columns)}"
        yield Problem(where, f"{name!r} is no column of {whose}", hint)


def _topics(spec: SinkSpec) -> Iterator[Problem]:
    target, source = spec.target.kafka, spec.source.kafka
    named = [("source.kafka.topic", source.connection, source.topic)]
    named.append(("target.kafka.topic", target.connection, target.topic))
    if spec.dead_letter is not None:
        named.append(("dead_letter.topic", target.connection, spec.dead_letter.topic))
    named.append(("progress.topic", target.connection, spec.progress_topic))
    seen: dict[tuple[str, str], str] = {}
    for where, connection, topic in named:
        first = seen.setdefault((connection, topic), where)
        if first != where:
            yield Problem(where, f"{topic!r} is {first} already", "each of them needs a topic of its own")


def _needs(*fields: str) -> frozenset[str]:
    return frozenset(fields)


_QUERY = ("query", "select", "where", "lookups", "source")

RULES: tuple[tuple[frozenset[str], Callable[[SinkSpec], Iterator[Problem]]], ...] = (
    (_needs("source"), _schema),
    (_needs("source"), _required),
    (_needs("source"), _watermark_column),
    (_needs("lookups"), _lookup_names),
    (_needs("query", "select", "where"), _one_way_to_select),
    (_needs("query", "select", "where", "lookups"), _sql),
    (_needs(*_QUERY), _columns),
    (_needs("query", "select", "where"), _length),
    (_needs(*_QUERY, "target", "writers"), _row_wise),
    (_needs(*_QUERY, "output_mode"), _state),
    (_needs(*_QUERY), _refresh),
    (_needs("target"), _value),
    (_needs(*_QUERY, "target"), _output_columns),
    (_needs("name", "source", "target", "dead_letter", "progress"), _topics),
)
"""Which fields must be right for a rule to make sense, and the rule."""
