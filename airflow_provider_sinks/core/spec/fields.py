"""The fields of a sink's parts: each kind with its rule, its error and its JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StrictStr, WithJsonSchema

from airflow_provider_sinks.core.errors import nearest
from airflow_provider_sinks.core.spec.durations import Duration, format_duration
from airflow_provider_sinks.core.spec.problems import UnfitError
from airflow_provider_sinks.core.spec.source_options import ALLOWED, check_source_option

TOPIC_PATTERN = "^[a-zA-Z0-9._-]{1,249}$"
NAME_PATTERN = "^[A-Za-z0-9_-]{1,100}$"
CONN_ID_PATTERN = r"^[\w.-]+$"
"""What a form takes as the id of a connection."""
VIEW_PATTERN = "^[A-Za-z_][A-Za-z0-9_]{0,62}$"
CHECKPOINT_SCHEMES = (
    "file",
    "hdfs",
    "viewfs",
    "webhdfs",
    "s3",
    "s3a",
    "gs",
    "abfs",
    "abfss",
    "wasb",
    "wasbs",
    "oss",
    "cosn",
    "obs",
    "ofs",
    "o3fs",
    "dbfs",
)
"""File systems of Hadoop that a checkpoint may lie on."""
_CONTAINER_SCHEMES = frozenset({"abfs", "abfss", "wasb", "wasbs"})
"""They write ``container@account`` where others have a login."""
LONGEST_POSTGRES_NAME_BYTES = 63
"""Postgres cuts longer names off without a word."""


def within(least: int, most: int, why: str) -> AfterValidator:
    """Refuse whole numbers out of a range, and say what lies behind its end.

    :param why: the reason of the upper bound.
    """

    def check(value: int) -> int:
        if value < least:
            raise UnfitError(f"{value:,} is less than {least:,}")
        if value > most:
            raise UnfitError(f"{value:,} is more than {most:,}", why)
        return value

    return AfterValidator(check)


def no_longer_than(most: timedelta, why: str) -> AfterValidator:
    """Refuse durations beyond an upper bound, and say why there is one."""

    def check(value: timedelta) -> timedelta:
        if value > most:
            raise UnfitError(f"{format_duration(value)} is more than {format_duration(most)}", why)
        return value

    return AfterValidator(check)


def whole_number(least: int, most: int) -> WithJsonSchema:
    """Return the JSON Schema of a whole number in a range."""
    return WithJsonSchema({"type": "integer", "minimum": least, "maximum": most})


def _match(pattern: str, what: str, hint: str) -> BeforeValidator:
    """Refuse text that is not of this form, in words of ours."""

    def check(value: Any) -> Any:
        if isinstance(value, str) and not re.fullmatch(pattern, value):
            raise UnfitError(f"{value!r} is not {what}", hint)
        return value

    return BeforeValidator(check)


def _scalar_as_text(value: Any) -> Any:
    """Let ``retention.ms: 1000`` and ``true`` stand for their text: topics and clients know only text."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else value


def _topic_name(value: Any) -> Any:
    if isinstance(value, str) and (value in (".", "..") or not re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", value)):
        hint = "1 to 249 of the characters a-z A-Z 0-9 . _ -"
        raise UnfitError(f"{value[:60]!r} is not a valid topic name", hint)
    return value


def _not_blank(value: Any) -> Any:
    if isinstance(value, str) and not value.strip():
        raise UnfitError("is empty", "write something, or leave it out")
    return value


def _table_name(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    parts = value.split(".")
    if len(parts) != 2 or not all(parts) or re.search(r'[\x00-\x1f"]', value):
        raise UnfitError(f"{value!r} is not a table", "schema.table, such as public.users")
    if any(len(part.encode()) > LONGEST_POSTGRES_NAME_BYTES for part in parts):
        raise UnfitError(f"{value!r} has a name of more than {LONGEST_POSTGRES_NAME_BYTES} bytes")
    return value


def check_folder(value: Any) -> Any:
    """Return the folder, or URI of one, as it is.

    :raises UnfitError: it holds a login or ``..``, is relative to nothing, or its scheme is not known.
    """
    if not isinstance(value, str):
        return value
    scheme, colon, rest = value.partition(":")
    if not colon:
        scheme, rest = "", value
    elif scheme not in CHECKPOINT_SCHEMES:
        hint = nearest(scheme, CHECKPOINT_SCHEMES) or f"one of {', '.join(CHECKPOINT_SCHEMES)}, or a path"
        raise UnfitError(f"{_without_login(scheme)!r} is no scheme of a file system", hint)
    authority, _, path = rest[2:].partition("/") if rest.startswith("//") else ("", "", rest)
    if ("@" in authority and scheme not in _CONTAINER_SCHEMES) or ":" in authority.rpartition("@")[0]:
        raise UnfitError(
            "holds a login", "give the driver its credentials by Spark's conf or its environment"
        )
    if "?" in value or "#" in value:
        raise UnfitError("holds ? or #, and a folder has no query", "write scheme://place/folder")
    if not rest.startswith("/"):
        raise UnfitError(
            f"{value!r} is a relative path", "write it from the root: /folder, or scheme://place/folder"
        )
    if ".." in path.split("/"):
        raise UnfitError("leads out of its folder by ..", "write the folder itself")
    return value


def _connection_id(value: Any) -> Any:
    """Return the id of an Airflow connection: what looks like an address is none, though Airflow takes it."""
    is_id = isinstance(value, str) and re.fullmatch(r"[\w#!()\-.:/\\]{1,200}", value)
    if isinstance(value, str) and (not is_id or "://" in value or re.fullmatch(r"[^:/]+:\d{2,5}", value)):
        hint = "the id of a connection, not its address"
        raise UnfitError(f"{_without_login(value)!r} is not an Airflow connection id", hint)
    return value


def _without_login(text: str) -> str:
    return text.rpartition("@")[2][:40]


def _one_or_more(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _start(value: Any) -> Any:
    if isinstance(value, str) and value in ("earliest", "latest"):
        return value
    if not isinstance(value, Mapping) or not value:
        near = nearest(str(value), ["earliest", "latest"])
        raise UnfitError(f"{value!r} is no start", near or "earliest, latest, or {partition: offset}")
    offsets = {_whole(partition): _whole(offset) for partition, offset in value.items()}
    return dict(sorted(offsets.items()))


def _whole(value: Any) -> int:
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,18}", value):  # JSON writes the keys as text
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise UnfitError(f"{value!r} is neither a partition nor an offset", "whole numbers from 0")
    return value


def _transaction_timeout(value: timedelta) -> timedelta:
    if not timedelta(seconds=1) <= value <= timedelta(minutes=15):
        raise UnfitError(
            f"{value.total_seconds():g}s is out of range", "from 1s to 15m, the broker's default limit"
        )
    return value


def _patience(value: timedelta) -> timedelta:
    if not timedelta(seconds=1) <= value <= timedelta(hours=1):
        raise UnfitError(f"{value.total_seconds():g}s is out of range", "from 1s to 1h")
    return value


Checkpoint = Annotated[StrictStr, BeforeValidator(check_folder), BeforeValidator(_not_blank)]
TopicName = Annotated[
    StrictStr, BeforeValidator(_topic_name), WithJsonSchema({"type": "string", "pattern": TOPIC_PATTERN})
]
ConnectionId = Annotated[StrictStr, BeforeValidator(_connection_id)]
SinkName = Annotated[
    StrictStr,
    _match(NAME_PATTERN, "a name", "1 to 100 letters, digits, _ and -"),
    WithJsonSchema({"type": "string", "pattern": NAME_PATTERN}),
]
ViewName = Annotated[StrictStr, _match(VIEW_PATTERN, "a name for a view", "letters, digits and _")]
TableName = Annotated[StrictStr, BeforeValidator(_table_name)]
SourceOption = Annotated[StrictStr, AfterValidator(check_source_option)]
Text = Annotated[StrictStr, BeforeValidator(_not_blank)]
Scalar = Annotated[
    StrictStr,
    BeforeValidator(_scalar_as_text),
    WithJsonSchema({"type": ["string", "integer", "boolean"]}),
]
SourceOptions = Annotated[
    dict[SourceOption, Scalar], Field(json_schema_extra={"propertyNames": {"enum": list(ALLOWED)}})
]
Columns = Annotated[
    tuple[Text, ...],
    BeforeValidator(_one_or_more),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]
Start = Annotated[
    Literal["earliest", "latest"] | dict[int, int],
    BeforeValidator(_start),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": ["earliest", "latest"]},
                {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}},
            ]
        }
    ),
]
TransactionTimeout = Annotated[Duration, AfterValidator(_transaction_timeout)]
PatienceBound = Annotated[Duration, AfterValidator(_patience)]
