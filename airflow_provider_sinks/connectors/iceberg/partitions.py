"""What a spec writes under ``partition_by``: a column, or a transform of one, as Iceberg's DDL names them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_sinks.connectors.table_format.types import NOT_EQUAL_TO_ITSELF
from airflow_provider_sinks.core.errors import nearest
from airflow_provider_sinks.core.spec.problems import UnfitError

if TYPE_CHECKING:
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema

_TERM = re.compile(r"\s*(?P<name>\w+)\s*\(\s*(?:(?P<size>[0-9]+)\s*,\s*)?(?P<column>[^()]+?)\s*\)\s*")
_OF_TIME = ("year", "month", "day", "hour")
_SIZED = ("bucket", "truncate")
_NAMES = (*_OF_TIME, *_SIZED)
_FIRST_FIELD_ID = 1000


@dataclass(frozen=True)
class PartitionTerm:
    """One part of the partitioning.

    :param transform: ``identity``, ``year``, ``month``, ``day``, ``hour``, ``bucket`` or ``truncate``.
    :param size: of the last two; 0 for the others.
    """

    column: str
    transform: str = "identity"
    size: int = 0

    @classmethod
    def parse(cls, text: str) -> PartitionTerm:
        """Read it as a spec has it.

        :raises UnfitError: it is none.
        """
        found = _TERM.fullmatch(text)
        if found is None:
            if "(" in text:
                raise UnfitError(f"{text!r} is no partition", "a column, or such as day(at), bucket(16, id)")
            return cls(text)
        name, size = found["name"].lower().removesuffix("s"), int(found["size"] or 0)
        if name not in _NAMES:
            hint = nearest(name, _NAMES) or f"one of {', '.join(_NAMES)}"
            raise UnfitError(f"{found['name']!r} is no transform", hint)
        if (name in _SIZED) != bool(size):
            example = f"{name}(16, {found['column']})" if name in _SIZED else f"{name}({found['column']})"
            raise UnfitError(f"{text!r} is no partition", example)
        return cls(found["column"], name, size)

    @property
    def name(self) -> str:
        """What its field is called, as Iceberg's own DDL calls it."""
        suffix = {"identity": "", "truncate": "_trunc"}.get(self.transform, f"_{self.transform}")
        return f"{self.column}{suffix}"

    @property
    def iceberg(self) -> str:
        """The transform in Iceberg's words."""
        return f"{self.transform}[{self.size}]" if self.size else self.transform

    def __str__(self) -> str:
        return f"{self.iceberg}({self.column})"


def partition_spec(terms: tuple[PartitionTerm, ...], schema: Schema) -> PartitionSpec:
    """Return the partitioning of a table to be made.

    :raises UnfitError: a transform does not go with the type of its column.
    """
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.transforms import parse_transform

    fields: list[PartitionField] = []
    for number, term in enumerate(terms):
        source = next(field for field in schema.fields if field.name == term.column)
        transform: Any = parse_transform(term.iceberg)
        if term.transform == "identity" and str(source.field_type) in NOT_EQUAL_TO_ITSELF:
            hint = f"partition by another column, or CAST({term.column} AS decimal(...)) in the query"
            what = f"{term.column} is {source.field_type}, in which NaN is no partition, and 0 is two"
            raise UnfitError(what, hint)
        if not transform.can_transform(source.field_type):
            raise UnfitError(f"{term.iceberg} does not go with {term.column}, which is {source.field_type}")
        field = PartitionField(
            source_id=source.field_id, field_id=_FIRST_FIELD_ID + number, transform=transform, name=term.name
        )
        fields.append(field)
    return PartitionSpec(*fields)
