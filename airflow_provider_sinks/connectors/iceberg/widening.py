"""The columns that an Iceberg table gets while it is there: what is added as what, what is widened to what.

Iceberg promotes ``int`` to ``long``, ``float`` to ``double``, and decimals to more digits of the same scale.
Its readers then read older files by the new type; no file is written anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.iceberg.types import columns_of, created
from airflow_provider_sinks.connectors.table_format.evolution import Types, is_done, may_begin
from airflow_provider_sinks.connectors.table_format.types import (
    Conversion,
    SparkType,
    conversion,
    digits_of,
    more_digits,
)
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, UnavailableError
from airflow_provider_sinks.core.evolution import AddColumn, Step, WidenColumn

if TYPE_CHECKING:
    from pyiceberg.table import Transaction
    from pyiceberg.types import IcebergType

_PROMOTED: Mapping[str, str] = {"int": "bigint", "float": "double"}
_JSON: Mapping[str, str] = {"bigint": "long", "double": "double"}
"""Spark's own JSON of what is promoted to."""


class IcebergTypes(Types):
    """See :class:`.table_format.evolution.Types`."""

    kind = "iceberg"

    def added(self, name: str, given: SparkType) -> str:
        """Return the type of a new column, if Iceberg has one."""
        return columns_of(created({name: given}))[name].kind

    def widened(self, given: str, own: str) -> str | None:
        """Return the type that Iceberg promotes a column to."""
        if conversion(given, own) is not Conversion.REFUSED:
            return None
        digits = digits_of(own) if own.startswith("decimal(") else None
        more = more_digits(given, digits) if digits is not None else None
        wider = f"decimal({more[0]},{more[1]})" if more else _PROMOTED.get(own, "")
        return wider if wider and conversion(given, wider) is not Conversion.REFUSED else None


ICEBERG_TYPES = IcebergTypes()


def put_into(transaction: Transaction, name: str, steps: Sequence[Step]) -> None:
    """Let a change of a table do these steps too, but for those that are done.

    :param name: of the table.
    :raises UnavailableError: the table is another one than when they were decided.
    :raises ConfigurationError: Iceberg takes them not, for what the table was before.
    """
    from pyiceberg.exceptions import ValidationError

    try:
        _put_into(transaction, name, steps)
    except (ValueError, ValidationError) as error:
        problem = Problem(f"columns {', '.join(step.name for step in steps)}", str(error))
        hint = "Give them other names or types in the query, with AS or CAST, or alter the table by hand."
        raise ConfigurationError(f'table "{name}" cannot be altered', [problem], hint) from error


def _put_into(transaction: Transaction, name: str, steps: Sequence[Step]) -> None:
    columns = columns_of(transaction.table_metadata.schema())
    with transaction.update_schema() as update:
        for step in steps:
            if is_done(step, columns):
                continue
            if not may_begin(step, columns):
                raise UnavailableError(
                    f'table "{name}" was altered by somebody else meanwhile',
                    f"Column {step.name!r} is another one than a moment ago.",
                    "The next try compares it anew.",
                )
            if isinstance(step, AddColumn):
                update.add_column((step.name,), _type(step.name, step.spark), required=False)
            else:
                update.update_column((step.name,), _promoted(step))


def _type(name: str, given: SparkType) -> IcebergType:
    return created({name: given}).fields[0].field_type


def _promoted(step: WidenColumn) -> IcebergType:
    return _type(step.name, _JSON.get(step.after, step.after))
