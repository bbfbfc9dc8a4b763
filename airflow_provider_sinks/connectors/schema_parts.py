"""The parts of a target that only some have: it writes by schemas of a registry, or alters its data table.

A target returns them from ``as_schema_registry_aware`` and ``as_schema_evolvable``
(:class:`.base.SinkConnector`). What they answer is data: :class:`.core.schemas.plan.SchemaPlan` and
:data:`.core.evolution.SchemaDiff`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from airflow_provider_sinks.core.evolution import SchemaDiff, Step
from airflow_provider_sinks.core.progress.record import ProgressRecord
from airflow_provider_sinks.core.schemas.plan import SchemaPlan


class SchemaRegistryAware(Protocol):
    """The part of a target that writes by schemas which a registry keeps.

    ``plan`` is called by a validation, and by each start before anything is changed. What it plans the target
    registers itself, with its first :meth:`.base.SinkConnector.announce`: behind the fence, so that a start
    that is refused or overtaken registers nothing.
    """

    @property
    def service(self) -> str:
        """Who is asked, for messages. No I/O, no secrets."""

    def plan(self, output: Mapping[str, Any]) -> Sequence[SchemaPlan]:
        """Return what a start would do about the schemas of keys and values. Registers nothing.

        :param output: the query's columns, as Spark writes a struct as JSON.
        :raises ConfigurationError: a column has no form in its schema, or a schema is not there.
        :raises UnavailableError: the registry did not answer.
        """

    def close(self) -> None:
        """Drop the client. Idempotent; must not raise."""


class SchemaEvolvable(Protocol):
    """The part of a target that alters its data table, so that it takes a query's columns.

    Only columns that are null in the rows before, and types that hold every value of the ones before. What it
    may do the sink's ``on_schema_change`` says; a difference that asks for more is incompatible.
    """

    def diff(self, output: Mapping[str, Any]) -> SchemaDiff:
        """Compare the query's columns with those that the target has now, and see whether it may be altered.

        Called by a validation and a dry run, from Airflow, and with each look of a start. Changes nothing.

        :param output: the query's columns, as Spark writes a struct as JSON.
        :raises UnavailableError: the target could not be seen.
        """

    def apply(self, steps: Sequence[Step], record: ProgressRecord) -> None:
        """Alter the target, and announce the run: called in place of :meth:`.base.SinkConnector.announce`.

        Behind the fence, once per start at most, with the steps of the verdict. Where target and progress can
        change in one transaction they do; else the target is altered first. So a launch that is killed
        anywhere leaves either all to be done, or less: a step that is done already is well.

        :raises FencedError: a newer run is in force.
        :raises ConfigurationError: the target does not do it; the statements are told.
        :raises UnavailableError: not now, such as where somebody else holds the table.
        """
