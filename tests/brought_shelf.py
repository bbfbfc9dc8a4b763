"""A package that brings targets of its own: one on a type of connection of its own, one on Kafka's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_sinks.connectors.base import ConnectorKind, HeldUp, Say, SinkConnector
from airflow_provider_sinks.connectors.connection_checks import CheckedConnectionType, Judging, Run
from airflow_provider_sinks.connectors.kafka.connection_type import KAFKA
from airflow_provider_sinks.connectors.plain import PlainCreation
from airflow_provider_sinks.core.checks.check import Check, Checks, Family
from airflow_provider_sinks.core.connection.alterable import AlterableOptions
from airflow_provider_sinks.core.connection.fields import ConnectionFields
from airflow_provider_sinks.core.connection.options import ConnectionOptions
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.decision.facts import Creation, Role
from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.progress.record import WriterId
from airflow_provider_sinks.core.spec.parts import ConnectedTarget, Target
from airflow_provider_sinks.core.spec.sink import SinkSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, repr=False)
class ShelfOptions(ConnectionOptions):
    """Where the shelf stands, and the word that opens it."""

    conn_type: ClassVar[str] = "shelf"
    hidden: ClassVar[frozenset[str]] = frozenset({"password"})

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

    def checks(self, run: Run, options: ConnectionOptions) -> Judging:
        """See whether it is there."""
        del run
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


class _Kind:
    """See :class:`.base.ConnectorKind`. Nothing of it is ever launched here."""

    writer_module = __name__

    def __init__(self, sink: type[SinkSpec], connection: CheckedConnectionType) -> None:
        self.sink = sink
        self.connection = connection

    def target_checks(self, spec: SinkSpec, options: ConnectionOptions | None) -> Iterable[Check]:
        assert options is not None
        checks = Checks(options.conn_id, Family.PERMISSIONS)
        yield checks.passes(f"place {spec.resources[Role.DATA]}", f"by {options.conn_type}")

    def connect(
        self,
        spec: SinkSpec,
        connections: ResolvedConnections,
        read_seconds: float | None,
        held_up: HeldUp,
        say: Say,
    ) -> SinkConnector:
        raise NotImplementedError

    def demand_fits(self, output: DataFrame, spec: SinkSpec) -> None:
        raise NotImplementedError

    def end_abandoned(
        self,
        spec: SinkSpec,
        connections: ResolvedConnections,
        run: str,
        writers: Iterable[WriterId],
        seconds: float,
    ) -> None:
        raise NotImplementedError


KIND: ConnectorKind = _Kind(ShelfSink, SHELF)
ON_KAFKA: ConnectorKind = _Kind(RidingSink, KAFKA)
