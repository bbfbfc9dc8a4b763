"""A package that brings targets of its own: one on a type of connection of its own, one on Kafka's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar, cast

from airflow_provider_sinks.connectors.connection_checks import (
    CheckedConnectionType,
    ConnectionChecks,
    Validation,
)
from airflow_provider_sinks.connectors.kafka.connection_type import KAFKA
from airflow_provider_sinks.connectors.kind import ConnectorKind
from airflow_provider_sinks.connectors.plain import PlainCreation
from airflow_provider_sinks.core.checks.check import Check, Checks, Family
from airflow_provider_sinks.core.connection.alterable import AlterableOptions
from airflow_provider_sinks.core.connection.fields import ConnectionFields
from airflow_provider_sinks.core.connection.options import ConnectionOptions
from airflow_provider_sinks.core.decision.facts import Creation, Role
from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.spec.parts import ConnectedTarget, Target
from airflow_provider_sinks.core.spec.sink import SinkSpec


@dataclass(frozen=True, repr=False)
class ShelfOptions(ConnectionOptions):
    """Where the shelf stands, and the word that opens it."""

    conn_type: ClassVar[str] = "shelf"
    undigested: ClassVar[frozenset[str]] = frozenset({"password"})

    conn_id: str
    fields: Mapping[str, str]

    @property
    def given(self) -> Mapping[str, str]:
        """Both."""
        return self.fields

    @property
    def summary(self) -> str:
        """The place."""
        return self.given["host"]

    def __repr__(self) -> str:
        return f"ShelfOptions({self.conn_id!r}, {self.summary!r})"


class ShelfType(CheckedConnectionType):
    """Host and password, in fields of their own."""

    name = "shelf"
    package = "airflow-providers-shelf"
    alterable = AlterableOptions(
        columns=frozenset({"host", "password"}),
        in_extra=frozenset(),
        aliases={},
        secrets=frozenset({"password"}),
        harmless=frozenset(),
        files=frozenset(),
        others=frozenset(),
        refused=lambda _: "",
    )

    def read(self, fields: ConnectionFields) -> ShelfOptions:
        """Demand both."""
        given = {"host": fields.host, "password": fields.password}
        if problems := [Problem(name, "is missing") for name, value in given.items() if not value]:
            raise ConfigurationError(f'connection "{fields.conn_id}" is not valid for a sink', problems)
        return ShelfOptions(fields.conn_id, {name: str(value) for name, value in given.items()})

    def restore(self, conn_id: str, given: Mapping[str, str]) -> ShelfOptions:
        """Take them."""
        return ShelfOptions(conn_id, given)

    def checks(self, validation: Validation, options: ConnectionOptions) -> ConnectionChecks:
        """See whether it is there."""
        del validation
        checks = Checks(options.conn_id, Family.NETWORK)
        if options.given["host"] == "nowhere":
            yield checks.fails("reach", "nobody is there")
            return None
        yield checks.passes("reach", "it is there")
        return options


SHELF = ShelfType()


class _Options(ConnectedTarget):
    """A place on a shelf."""

    place: str = "top"


class ShelfChoice(Target):
    """Where rows go."""

    shelf: _Options


class RidingChoice(Target):
    """Where rows go."""

    riding: _Options


class _BroughtSink(SinkSpec):
    """What both kinds of sink have."""

    dead_letter_example: ClassVar[str] = ""
    target: Any
    dead_letter: None = None
    progress: None = None

    @property
    def progress_is_shared(self) -> bool:
        return False

    @property
    def resources(self) -> dict[Role, str]:
        return {Role.DATA: self.target.options.place, Role.PROGRESS: f"{self.target.options.place} progress"}

    def creations(self) -> dict[Role, Creation]:
        return {role: PlainCreation(role, name) for role, name in self.resources.items()}

    def shown(self) -> dict[str, str | None]:
        return {}

    def told(self) -> Iterator[str]:
        yield "- target: a shelf"


class ShelfSink(_BroughtSink):
    """A sink on a shelf."""

    right_target: ClassVar[Any] = {"shelf": {"connection": "s"}}
    target: ShelfChoice


class RidingSink(_BroughtSink):
    """A sink on a Kafka connection that is none into a topic."""

    right_target: ClassVar[Any] = {"riding": {"connection": "k"}}
    target: RidingChoice


def _target_checks(spec: SinkSpec, options: ConnectionOptions) -> Iterator[Check]:
    checks = Checks(options.conn_id, Family.PERMISSIONS)
    yield checks.passes(f"place {spec.resources[Role.DATA]}", f"by {options.conn_type}")


def _kind(sink: type[SinkSpec], connection: CheckedConnectionType) -> ConnectorKind:
    """Return a kind as far as Airflow's side asks it: nothing of it is ever launched."""
    asked = SimpleNamespace(sink=sink, connection=connection, target_checks=_target_checks, form=None)
    return cast("ConnectorKind", asked)


KIND = _kind(ShelfSink, SHELF)
ON_KAFKA = _kind(RidingSink, KAFKA)
