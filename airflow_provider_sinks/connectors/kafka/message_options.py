"""The options of what a message carries beside its key and value: headers, and a time of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, WithJsonSchema

from airflow_provider_sinks.core.errors import nearest
from airflow_provider_sinks.core.spec.fields import Text
from airflow_provider_sinks.core.spec.parts import Part
from airflow_provider_sinks.core.spec.problems import UnfitError

SOURCE = "source"
"""As the source record has it."""
NOW = "now"
"""When the row is written."""


class TimeColumn(Part):
    """A column that has the time of the message."""

    column: Text


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _headers(value: Any) -> Any:
    if value is None or value == SOURCE:
        return value
    if isinstance(value, str):
        raise UnfitError(
            f"{value!r} is no way to make headers",
            nearest(value, [SOURCE]) or f"{SOURCE}, or {{name: column}}",
        )
    if not isinstance(value, Mapping) or not value:
        raise UnfitError("names no header", f"{SOURCE}, or {{name: column}}")
    for name, column in value.items():
        if not _is_text(name):
            raise UnfitError(f"{name!r} is no name of a header", "write text")
        if "\0" in name:  # librdkafka takes names as C has them: they would end there
            raise UnfitError(f"{name!r} is no name of a header: it has a zero byte", "leave it out")
        if not _is_text(column):
            raise UnfitError(f"{column!r}, for header {name!r}, is no column", "the name of one column")
    return dict(sorted(value.items()))


def _time(value: Any) -> Any:
    if value is None or isinstance(value, TimeColumn) or value in (NOW, SOURCE):
        return value
    if isinstance(value, Mapping) and set(value) == {"column"}:
        if not _is_text(value["column"]):
            raise UnfitError(f"{value['column']!r} is no column", "the name of one column")
        return value
    given = next(iter(value), "") if isinstance(value, Mapping) else value
    near = nearest(str(given), ["column"] if isinstance(value, Mapping) else [NOW, SOURCE])
    raise UnfitError(f"{value!r} is no time", near or f"{NOW}, {SOURCE}, or {{column: name}}")


Headers = Annotated[
    Literal["source"] | dict[Text, Text],
    BeforeValidator(_headers),
    WithJsonSchema(
        {
            "anyOf": [
                {"const": SOURCE},
                {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}},
            ],
            "description": "source: those of the source record; or columns by the names of headers",
        }
    ),
]
MessageTime = Annotated[
    Literal["now", "source"] | TimeColumn,
    BeforeValidator(_time),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": [NOW, SOURCE]},
                {
                    "type": "object",
                    "properties": {"column": {"type": "string"}},
                    "required": ["column"],
                    "additionalProperties": False,
                },
            ],
            "description": "of each message: when it is written, as its source record has it, or of a column",
        }
    ),
]
