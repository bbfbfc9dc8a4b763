"""What a change of each option bears on that sinks have whatever their target is: one line for each option.

A test walks through all options of all specs: a new one without its line fails there. ``*`` stands for a name
that the user gives. Where a whole part comes or goes, the line of the part counts, if it has one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, get_args, get_origin

from airflow_provider_sinks.core.redefinition.bearing import Bearing

if TYPE_CHECKING:
    from pydantic import BaseModel

    from airflow_provider_sinks.core.spec.sink import SinkSpec

QUERY = ("select", "where", "query")
"""Three ways to write one thing, which is compared as such."""

COMMON: Mapping[str, Bearing] = {
    "name": Bearing.SINK,
    "source.kafka.connection": Bearing.PLACE,
    "source.kafka.topic": Bearing.SOURCE,
    "source.kafka.format": Bearing.READING,
    "source.kafka.schema": Bearing.READING,
    "source.kafka.envelope": Bearing.CHANGES,
    "source.kafka.key_as.column": Bearing.READING,
    "source.kafka.key_as.columns": Bearing.READING,
    "source.kafka.key_as.format": Bearing.READING,
    "source.kafka.key_as.schema": Bearing.READING,
    "source.kafka.registry": Bearing.READING,
    "source.kafka.subjects": Bearing.READING,
    "source.kafka.required": Bearing.READING,
    "source.kafka.start": Bearing.BEGINNING,
    "source.kafka.watermark.column": Bearing.READING,
    "source.kafka.watermark.delay": Bearing.READING,
    "source.kafka.max_offsets_per_epoch": Bearing.RUN,
    "source.kafka.options": Bearing.RUN,
    "lookups.*": Bearing.ROWS,
    "lookups.*.postgres.connection": Bearing.ROWS,
    "lookups.*.postgres.table": Bearing.ROWS,
    "lookups.*.postgres.columns": Bearing.ROWS,
    "lookups.*.postgres.refresh": Bearing.RUN,
    "lookups.*.postgres.max_bytes": Bearing.RUN,
    "select": Bearing.READING,
    "where": Bearing.READING,
    "query": Bearing.READING,
    "target.*": Bearing.OUTPUT,
    "trigger": Bearing.RUN,
    "trigger.every": Bearing.RUN,
    "dead_letter": Bearing.ROWS,
    "dead_letter.max_per_epoch": Bearing.RUN,
    "dead_letter.max_ratio": Bearing.RUN,
    "writers": Bearing.RUN,
    "output_mode": Bearing.READING,
    "checkpoint": Bearing.RUN,
    "transaction_timeout": Bearing.RUN,
    "patience": Bearing.RUN,
    "replay": Bearing.SINK,
}

_WHOLE = ("replay",)
"""Parts of which no option is compared: a launch of a replay must be the announced one, or is refused."""


def unsaid(sink: type[SinkSpec]) -> tuple[str, ...]:
    """Return the options of a kind of sink of which nobody says what a change bears on.

    :param sink: the spec of the kind.
    """
    said = {*COMMON, *sink.bearings}
    return tuple(path for path in _options(sink, "") if path not in said)


def _options(part: type[BaseModel], prefix: str) -> Iterator[str]:
    from airflow_provider_sinks.core.spec.parts import Part

    for name, field in part.model_fields.items():
        path = f"{prefix}{field.alias or name}"
        parts = [one for one in _classes(field.annotation) if issubclass(one, Part)]
        if not parts or path in _WHOLE:
            yield from () if field.annotation is type(None) else (path,)
        is_named = get_origin(field.annotation) is dict
        for one in parts if path not in _WHOLE else ():
            yield from _options(one, f"{path}.*." if is_named else f"{path}.")


def _classes(annotation: Any) -> Iterator[type]:
    """Give the classes that a type is made of."""
    if isinstance(annotation, type) and get_origin(annotation) is None:
        yield annotation
    for argument in get_args(annotation):
        yield from _classes(argument)
