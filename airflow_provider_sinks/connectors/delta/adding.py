"""The columns that a Delta table gets while it is there. None is widened.

Delta reads a file by another type than it was written with only where a table has the feature
``typeWidening``, and tables with that are not written here (:mod:`.features`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_sinks.connectors.delta.types import columns_of, created
from airflow_provider_sinks.connectors.table_format.evolution import Types, is_done, may_begin
from airflow_provider_sinks.connectors.table_format.types import SparkType
from airflow_provider_sinks.core.errors import UnavailableError
from airflow_provider_sinks.core.evolution import AddColumn, Step
from airflow_provider_sinks.core.spec.problems import UnfitError

if TYPE_CHECKING:
    from deltalake import CommitProperties

    from airflow_provider_sinks.connectors.delta.log import DeltaVersion


class DeltaTypes(Types):
    """See :class:`.table_format.evolution.Types`.

    :param has_features: the table has times without a zone already, which only who knows features reads.
    """

    kind = "delta"

    def __init__(self, *, has_features: bool) -> None:
        self._has_features = has_features

    def added(self, name: str, given: SparkType) -> str:
        """Return the type of a new column, if Delta has one, and room for its name."""
        fields = json.loads(created({name: given}))["fields"]
        if not self._has_features and needs_features(fields):
            what = "readers that know no features of Delta could no longer read it, with timestamp_ntz"
            cast = name if isinstance(given, str) else "..."
            raise UnfitError(what, f"CAST({cast} AS TIMESTAMP) in the query")
        return columns_of(fields)[name].kind

    def widened(self, given: str, own: str) -> str | None:
        """Return nothing."""
        del given, own
        return None


def needs_features(fields: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a table with these columns cannot be read by whoever knows no features of Delta.

    :param fields: as Spark's JSON has them.
    """
    return any(_has_features_inside(field["type"]) for field in fields)


def _has_features_inside(kind: SparkType) -> bool:
    if isinstance(kind, str):
        return kind == "timestamp_ntz"
    parts = (kind.get(part, "") for part in ("elementType", "keyType", "valueType"))
    return needs_features(kind.get("fields", ())) or any(map(_has_features_inside, parts))


def left_of(table: DeltaVersion, steps: Sequence[Step]) -> dict[str, SparkType]:
    """Return the columns that a table still lacks of some steps, by name.

    :raises UnavailableError: the table is another one than when they were decided.
    """
    columns = columns_of(table.fields)
    left = [step for step in steps if not is_done(step, columns)]
    if changed := [step.name for step in left if not may_begin(step, columns)]:
        raise UnavailableError(
            f'table "{table.name}" was altered by somebody else meanwhile',
            f"Column {changed[0]!r} is another one than a moment ago.",
            "The next try compares it anew.",
        )
    return {step.name: step.spark for step in left if isinstance(step, AddColumn)}


def add(table: DeltaVersion, columns: dict[str, SparkType], properties: CommitProperties) -> None:
    """Give a table columns, by one commit on the version that was loaded."""
    from deltalake import Schema

    table.raw.alter.add_columns(Schema.from_json(created(columns)).fields, commit_properties=properties)
