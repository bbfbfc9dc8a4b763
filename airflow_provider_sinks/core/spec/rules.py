"""What must hold between the parts of a sink, each rule a function that yields problems.

A rule is asked only when the parts that it looks at are right in themselves, so that one mistake does not
show up twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from airflow_provider_sinks.core.errors import Problem, nearest
from airflow_provider_sinks.core.query.analysis import INTERNAL, SOURCE, QueryShape, analyse, select_sql
from airflow_provider_sinks.core.query.sql import SqlError
from airflow_provider_sinks.core.schemas.languages import demand_holdable, parse, spark_columns
from airflow_provider_sinks.core.schemas.subjects import needs_record
from airflow_provider_sinks.core.spec.changes import change_problems, envelope_problems, target_problems
from airflow_provider_sinks.core.spec.ddl import columns_of
from airflow_provider_sinks.core.spec.parts import REGISTERED_FORMATS, Format
from airflow_provider_sinks.core.spec.problems import UnfitError, UnfitPartsError
from airflow_provider_sinks.core.spec.schema_options import DeclaredSchema, declared
from airflow_provider_sinks.core.spec.source_options import source_option_problems

if TYPE_CHECKING:
    from airflow_provider_sinks.core.spec.sink import SinkSpec

Rule: TypeAlias = "tuple[frozenset[str], Callable[[Any], Iterator[Problem]]]"
"""Which fields must be right for a rule to make sense, and the rule."""
SQL_BYTES_MAX = 900_000
"""A start writes the whole sink into its progress record, and clients and topics take 1 MB by default."""


def check(spec: SinkSpec, broken: frozenset[str]) -> Iterator[Problem]:
    """Give the problems between parts that are not broken in themselves; those of the target come last."""
    for needed, rule in (*RULES, *spec.target_rules):
        if not broken & needed:
            yield from rule(spec)


def _schema(spec: SinkSpec) -> Iterator[Problem]:
    kafka, where = spec.source.kafka, "source.kafka.schema"
    if kafka.format.is_registered:
        yield from _registered_schema(where, kafka.format, kafka.schema_)
    elif kafka.format is Format.JSON and kafka.schema_ is None:
        hint = 'such as schema: "viewtime long, userid string"; or format: text, or bytes'
        yield Problem(where, "is missing: format json needs one", hint)
    elif kafka.format is not Format.JSON and kafka.schema_ is not None:
        yield Problem(where, f"does not go with format {kafka.format}", "its one column is named value")
    elif isinstance(kafka.schema_, DeclaredSchema):
        yield Problem(where, "is no text: format json takes Spark DDL", 'such as "userid string, at long"')
    elif kafka.schema_ is not None:
        try:
            columns = columns_of(kafka.schema_)
        except UnfitError as unfit:
            yield Problem(where, str(unfit), unfit.hint)
        else:
            yield from _internal_names(where, columns)


def _internal_names(where: str, columns: Iterable[str]) -> Iterator[Problem]:
    for name in columns:
        if name.lower().startswith(INTERNAL):
            yield Problem(where, f"column {name!r}: names with {INTERNAL} are the sink's own")


def _registered_schema(
    where: str, format_: Format, choice: str | DeclaredSchema | None, *, has_columns: bool = True
) -> Iterator[Problem]:
    """Give what is wrong with a written schema; one that refers to others is read once they are known."""
    schema = declared(choice)
    if schema is not None and schema.message is not None and format_ is not Format.PROTOBUF:
        yield Problem(f"{where}.message", f"does not go with format {format_}", "leave it out")
    if schema is None or not schema.is_read_here(format_):
        return
    try:
        found = parse(format_, str(schema.inline))
        if has_columns:
            yield from _internal_names(where, [name for name, _ in spark_columns(found)])
        else:
            demand_holdable(found)
    except UnfitPartsError as unfit:
        yield from unfit.under(where)


def _source_key(spec: SinkSpec) -> Iterator[Problem]:
    kafka, where = spec.source.kafka, "source.kafka.key_as"
    if kafka.key_as is None:
        return
    if kafka.key_as.format is Format.JSON and not (kafka.has_deletes or kafka.key_as.columns):
        yield Problem(f"{where}.format", "json is not read in keys", "text, and from_json in the query")
    elif kafka.key_as.format.is_registered:
        kind, choice = kafka.key_as.format, kafka.key_as.schema_
        yield from _registered_schema(f"{where}.schema", kind, choice, has_columns=False)
    elif kafka.key_as.schema_ is not None:
        yield Problem(f"{where}.schema", f"does not go with format {kafka.key_as.format}", "leave it out")
    if kafka.has_deletes:
        return
    yield from _internal_names(f"{where}.column", [kafka.key_as.column])
    values = (spec.source_columns or ())[:-1]
    if kafka.key_as.column.lower() in {name.lower() for name in values}:
        yield Problem(
            f"{where}.column", f"{kafka.key_as.column!r} is a column of the value already", "name another"
        )


def _source_registry(spec: SinkSpec) -> Iterator[Problem]:
    kafka, where = spec.source.kafka, "source.kafka.registry"
    if kafka.uses_registry and kafka.registry is None:
        named = " and ".join(sorted(kafka.registered_formats))
        yield Problem(where, f"is missing: format {named} needs one", REGISTRY_HINT)
    elif kafka.registry is not None and not kafka.uses_registry:
        hint = f"leave it out; {REGISTERED_FORMATS} uses one"
        yield Problem(where, f"does not go with format {kafka.format}", hint)
    if kafka.uses_registry and needs_record(kafka.naming):
        for part, kind, choice in (
            ("schema", kafka.format, kafka.schema_),
            (
                "key_as.schema",
                kafka.key_as.format if kafka.key_as else Format.BYTES,
                kafka.key_as and kafka.key_as.schema_,
            ),
        ):
            if kind.is_registered and choice is None:
                what = f"is missing: subjects are named by record, and no record is known ({kafka.naming})"
                yield Problem(f"source.kafka.{part}", what, "name it: {subject: ...}")


REGISTRY_HINT = "the id of an Airflow connection of type http"


def _source_options(spec: SinkSpec) -> Iterator[Problem]:
    yield from source_option_problems(spec.source.kafka.options)


def _required(spec: SinkSpec) -> Iterator[Problem]:
    kafka, where = spec.source.kafka, "source.kafka.required"
    if kafka.required and kafka.format is not Format.JSON:
        hint = "leave it out: its schema says so" if kafka.format.is_registered else "leave it out"
        yield Problem(where, f"does not go with format {kafka.format}", hint)
    elif spec.source_columns is not None:
        for index, name in enumerate(kafka.required or ()):
            yield from known_column(f"{where}[{index}]", name, spec.source_columns, "the schema")


def _one_way_to_select(spec: SinkSpec) -> Iterator[Problem]:
    if spec.query is not None:
        for name in ("select", "where"):
            if getattr(spec, name) is not None:
                yield Problem(name, "does not go with query", "write it into the query")


def _sql(spec: SinkSpec) -> Iterator[Problem]:
    if spec.query is not None and (spec.select or spec.where):
        return
    try:
        plan = spec.shape
    except SqlError as error:
        yield error.at(_unreadable_option(spec))
        return
    of_where = _problems_of_where(spec, plan) if plan.problems else Counter()
    for problem in plan.problems:
        option = "where" if of_where[problem] else _option_of(spec, problem)
        of_where -= Counter([problem])
        yield Problem(option, problem.what, problem.hint)
    read = {name.lower() for name in plan.lookups}
    for name in spec.lookups:
        if not plan.problems and name.lower() not in read:
            yield Problem(f"lookups.{name}", "is never read", f"JOIN {name} in the query, or leave it out")


def _columns(spec: SinkSpec) -> Iterator[Problem]:
    plan = spec.readable_shape
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


def _unreadable_option(spec: SinkSpec) -> str:
    """Name the option that no query can be made of."""
    try:
        select_sql(spec.select, None)
    except SqlError:
        return "select"
    return "where"


def _problems_of_where(spec: SinkSpec, plan: QueryShape) -> Counter[Problem]:
    """Return what is wrong only with ``where``: not every problem of the SQL knows its clause."""
    if spec.query is not None or spec.where is None:
        return Counter()
    without = analyse(select_sql(spec.select, None), tuple(spec.lookups), spec.source_columns)
    return Counter(plan.problems) - Counter(without.problems)


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
    plan = spec.readable_shape
    if plan is None or plan.problems or plan.row_wise:
        return
    clauses = "; ".join(str(obstacle) for obstacle in plan.obstacles)
    if spec.writers == "per_partition":
        hint = "leave writers out, or write writers: single"
        yield Problem("writers", f"per_partition needs a row-wise query, but it has {clauses}", hint)


def _state(spec: SinkSpec) -> Iterator[Problem]:
    plan, watermark = spec.readable_shape, spec.source.kafka.watermark
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
    plan = spec.readable_shape
    if plan is None or plan.problems or plan.row_wise:
        return
    for name in plan.lookups:
        if spec.lookups[name].postgres.refresh is not None:
            what = "only a row-wise query reads its lookups again while it runs"
            yield Problem(f"lookups.{name}.postgres.refresh", what, "leave it out: read once, at the start")


def _watermark_column(spec: SinkSpec) -> Iterator[Problem]:
    watermark, columns = spec.source.kafka.watermark, spec.source_columns
    if watermark is not None and columns is not None:
        yield from known_column("source.kafka.watermark.column", watermark.column, columns, "the source")


def known_column(where: str, name: str, columns: tuple[str, ...], whose: str) -> Iterator[Problem]:
    """Give the problem of a name that is no column; ``whose`` says of what."""
    if name not in columns:
        hint = nearest(name, columns) or f"columns: {', '.join(columns)}"
        yield Problem(where, f"{name!r} is no column of {whose}", hint)


def needs(*fields: str) -> frozenset[str]:
    """Return the fields that a rule looks at."""
    return frozenset(fields)


QUERY = ("query", "select", "where", "lookups", "source")

RULES: tuple[Rule, ...] = (
    (needs("source"), _schema),
    (needs("source"), _source_options),
    (needs("source"), _required),
    (needs("source"), _source_key),
    (needs("source"), _source_registry),
    (needs("source"), envelope_problems),
    (needs("source"), _watermark_column),
    (needs("lookups"), _lookup_names),
    (needs("query", "select", "where"), _one_way_to_select),
    (needs("query", "select", "where", "lookups"), _sql),
    (needs(*QUERY), _columns),
    (needs("query", "select", "where"), _length),
    (needs(*QUERY, "target", "writers"), _row_wise),
    (needs(*QUERY, "output_mode"), _state),
    (needs(*QUERY), _refresh),
    (needs(*QUERY), change_problems),
    (needs(*QUERY, "target"), target_problems),
)
