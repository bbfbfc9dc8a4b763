"""The options of what a row does to a Kafka topic: it is appended, replaces by its key, or is a change."""

from __future__ import annotations

import enum
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from airflow_provider_sinks.core.errors import nearest
from airflow_provider_sinks.core.spec.parts import Tombstones
from airflow_provider_sinks.core.spec.problems import UnfitError


class WrittenEnvelope(enum.StrEnum):
    """What a message says of its row."""

    APPEND = "append"
    UPSERT = "upsert"
    DEBEZIUM = "debezium"


class Deletes(enum.StrEnum):
    """How a delete is written in Debezium's envelope."""

    WITH_TOMBSTONE = "with_tombstone"
    WITHOUT_TOMBSTONE = "without_tombstone"
    REWRITE = "rewrite"


def _tombstones(value: Any) -> Any:
    if isinstance(value, bool) or value in list(Tombstones):
        return value
    words = ["true", "false", *Tombstones]
    if isinstance(value, str):
        raise UnfitError(f"{value!r} is none of {', '.join(words)}", nearest(value, words))
    raise UnfitError(f"must be one of {', '.join(words)}")


TombstoneRule = Annotated[
    bool | Tombstones,
    BeforeValidator(_tombstones),
    WithJsonSchema(
        {
            "anyOf": [{"type": "boolean"}, {"enum": [one.value for one in Tombstones]}],
            "description": "a row whose columns outside of the key are all null is a delete: true or false "
            "with envelope append, delete or ignore with the others, where delete is the default",
        }
    ),
]
