"""What must hold between a Kafka target and the rest of its sink, each rule a function that yields problems.

Which of them is asked when, and what holds for every kind of target, stands in :mod:`.core.spec.rules`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.kafka.envelope_rules import ENVELOPE_RULES
from airflow_provider_sinks.connectors.kafka.topic_facts import LOST_LETTERS, POLICY, is_compacted
from airflow_provider_sinks.core.errors import Problem
from airflow_provider_sinks.core.schemas.languages import parse
from airflow_provider_sinks.core.schemas.subjects import Part, tells_parts_apart
from airflow_provider_sinks.core.spec.parts import REGISTERED_FORMATS, Format, Tombstones
from airflow_provider_sinks.core.spec.problems import UnfitPartsError
from airflow_provider_sinks.core.spec.rules import QUERY, REGISTRY_HINT, Rule, known_column, needs
from airflow_provider_sinks.core.spec.schema_options import DeclaredSchema

if TYPE_CHECKING:
    from airflow_provider_sinks.connectors.kafka.spec import KafkaSink

PROGRESS_PREFIX = "_sinks-progress-"
"""How the progress topics are named for which a spec names none."""
_OUTPUTS = ("target.kafka.topic", "dead_letter.topic")


def _key(spec: KafkaSink) -> Iterator[Problem]:
    plan = spec.readable_shape
    if plan is None or plan.problems or plan.row_wise or spec.target.kafka.key:
        return
    what = "a stateful query needs one" if plan.stateful else "a query that is not row-wise needs one"
    names = ", ".join(o.clause for o in plan.obstacles)
    hint = f"the source record's key cannot pass through {names}; name the columns of the key"
    yield Problem("target.kafka.key", f"is missing: {what}", hint)


def _of_source(spec: KafkaSink) -> Iterator[Problem]:
    """Give what cannot pass from a source record to a row that many records led to."""
    plan, kafka = spec.readable_shape, spec.target.kafka
    if plan is None or plan.problems or plan.row_wise:
        return
    names = ", ".join(o.clause for o in plan.obstacles)
    if kafka.passes_headers:
        what = f"source does not go with {names}: a row comes of many records"
        yield Problem("target.kafka.headers", what, "{name: column}, or leave it out")
    if kafka.passes_time:
        what = f"source does not go with {names}: a row comes of many records"
        yield Problem("target.kafka.timestamp", what, "{column: name}, or leave it out")


def _key_in_value(spec: KafkaSink) -> Iterator[Problem]:
    kafka, where = spec.target.kafka, "target.kafka.key_in_value"
    if kafka.key_in_value is None:
        return
    if not kafka.key:
        yield Problem(where, "is for a key made of columns", "name them by key, or leave it out")
    if kafka.format in (Format.TEXT, Format.BYTES):
        yield Problem(
            where, f"does not go with format {kafka.format}: its value is one column", "leave it out"
        )
    elif kafka.value is not None:
        yield Problem(where, "does not go with value: that column is all of the value", "leave it out")


def _value(spec: KafkaSink) -> Iterator[Problem]:
    kafka, where = spec.target.kafka, "target.kafka"
    is_said = kafka.tombstones is Tombstones.IGNORE if kafka.replaces else kafka.tombstones
    if kafka.format in (Format.TEXT, Format.BYTES) and is_said:
        what = f"is for format json: in {kafka.format} a null value is a tombstone"
        yield Problem(f"{where}.tombstones", what, "leave it out")
    elif is_said and kafka.value is not None:
        yield Problem(
            f"{where}.tombstones", "does not go with value: a null value is a tombstone", "leave it out"
        )
    if kafka.value is not None and kafka.value in kafka.key:
        yield Problem(f"{where}.value", f"{kafka.value!r} is the key already")
    if len(set(kafka.key)) < len(kafka.key):
        yield Problem(f"{where}.key", "names a column twice")


def _partition_by(spec: KafkaSink) -> Iterator[Problem]:
    kafka, where = spec.target.kafka, "target.kafka.partition_by"
    names = kafka.partition_by or ()
    if len(set(names)) < len(names):
        yield Problem(where, "names a column twice")
    if kafka.replaces and (others := kafka.partition_columns_beside_key):
        what = f"names {', '.join(others)} beside the key: rows of one key would lose their order"
        yield Problem(where, what, f"columns of the key, or leave out envelope {kafka.written_as}")
    elif kafka.tombstones and (others := kafka.partition_columns_beside_key):
        what = f"names {', '.join(others)} beside the key: null in a tombstone, which would go elsewhere"
        yield Problem(where, what, "columns of the key, or leave out tombstones")


def _output_columns(spec: KafkaSink) -> Iterator[Problem]:
    plan, kafka = spec.readable_shape, spec.target.kafka
    if plan is None or plan.problems or plan.unknown_columns or plan.columns is None:
        return
    named = [*((f"key[{index}]", name) for index, name in enumerate(kafka.key)), *kafka.columns_beside]
    for option, name in named:
        yield from known_column(f"target.kafka.{option}", name, plan.columns, "the output")
    if kafka.value is not None:
        yield from known_column("target.kafka.value", kafka.value, plan.columns, "the output")
    elif kafka.format in (Format.TEXT, Format.BYTES):
        values = [name for name in plan.columns if name not in kafka.key]
        if len(values) != 1:
            what = f"{kafka.format} needs one column for the value, but there are {len(values)}"
            names = f"of {', '.join(values)}" if values else "of the output"
            yield Problem("target.kafka.format", what, f"name one {names} by value")
    elif kafka.key_in_value is False and kafka.key and not kafka.value_columns(plan.columns):
        what = "leaves nothing: every column is in the key"
        yield Problem("target.kafka.key_in_value", what, "select a column that is not in the key")


def _registry(spec: KafkaSink) -> Iterator[Problem]:
    kafka, where = spec.target.kafka, "target.kafka"
    parts = kafka.registered_parts
    if parts and kafka.registry is None:
        named = " and ".join(sorted({kafka.format_of(part) for part in parts}))
        yield Problem(f"{where}.registry", f"is missing: format {named} needs one", REGISTRY_HINT)
    elif kafka.registry is not None and not parts:
        what = f"does not go with format {kafka.format}"
        yield Problem(f"{where}.registry", what, f"leave it out; {REGISTERED_FORMATS} uses one")
    if kafka.key_format is not None and not kafka.key:
        yield Problem(f"{where}.key_format", "is for a key made of columns", "name them by key")
    for part, option in ((Part.KEY, "key_schema"), (Part.VALUE, "schema")):
        if part not in parts and kafka.declared(part) is not None:
            yield Problem(f"{where}.{option}", f"is for a {part} in {REGISTERED_FORMATS}", "leave it out")
        elif part in parts:
            yield from _written_schema(f"{where}.{option}", kafka.format_of(part), kafka.declared(part))
    if len(parts) == 2 and not tells_parts_apart(kafka.naming):
        names = {(kafka.declared(part) or DeclaredSchema()).inline for part in parts}
        if len(names) == 1 and None not in names:
            yield Problem(
                f"{where}.subjects", "gives key and value one subject", "put {part} into the template"
            )


def _written_schema(where: str, format_: Format, schema: DeclaredSchema | None) -> Iterator[Problem]:
    """Give what is wrong with a written schema; one that refers to others is read once they are known."""
    if schema is not None and schema.message is not None and format_ is not Format.PROTOBUF:
        yield Problem(f"{where}.message", f"does not go with format {format_}", "leave it out")
    if schema is None or not schema.is_read_here(format_):
        return
    try:
        parse(format_, str(schema.inline))
    except UnfitPartsError as unfit:
        yield from unfit.under(where)


def _topics(spec: KafkaSink) -> Iterator[Problem]:
    target, source = spec.target.kafka, spec.source.kafka
    named = [("source.kafka.topic", source.connection, source.topic)] if spec.replay is None else []
    named.append(("target.kafka.topic", target.connection, target.topic))
    if spec.dead_letter is not None:
        named.append(("dead_letter.topic", target.connection, spec.dead_letter.topic))
    named.append(("progress.topic", target.connection, spec.progress_topic))
    seen: dict[tuple[str, str], str] = {}
    for where, connection, topic in named:
        first = seen.setdefault((connection, topic), where)
        if first != where:
            yield Problem(where, f"{topic!r} is {first} already", "each of them needs a topic of its own")
        elif where in _OUTPUTS and topic.startswith(PROGRESS_PREFIX):
            what = f"{topic!r} is named as the progress topic of a sink, whose rows would be lost or doubled"
            yield Problem(where, what, "another topic")


def _letters(spec: KafkaSink) -> Iterator[Problem]:
    config = {} if spec.dead_letter is None else spec.dead_letter.config
    policy = str(config.get(POLICY, ""))
    if is_compacted(policy):
        yield Problem(f"dead_letter.config.{POLICY}", f"is {policy}: {LOST_LETTERS}", "delete")


RULES: tuple[Rule, ...] = (
    (needs(*QUERY, "target", "writers"), _key),
    (needs(*QUERY, "target"), _of_source),
    (needs("target"), _value),
    *ENVELOPE_RULES,
    (needs("target"), _partition_by),
    (needs("target"), _key_in_value),
    (needs("target"), _registry),
    (needs(*QUERY, "target"), _output_columns),
    (needs("name", "source", "target", "dead_letter", "progress"), _topics),
    (needs("target", "dead_letter"), _letters),
)
