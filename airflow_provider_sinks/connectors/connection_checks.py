"""The checks of a connection by itself: what a type that a connector brings must know beside its options."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import TypeAlias

from airflow_provider_sinks.clients.time_limit import Deadline
from airflow_provider_sinks.core.checks.check import Check, Checks
from airflow_provider_sinks.core.checks.identities import IdentityChecks
from airflow_provider_sinks.core.connection.options import ConnectionOptions
from airflow_provider_sinks.core.connection.types import ConnectionType
from airflow_provider_sinks.core.decision.facts import Role
from airflow_provider_sinks.core.progress.witness import Witness
from airflow_provider_sinks.core.spec.sink import SinkSpec


@dataclass
class Validation:
    """One validation: what is asked, and what later steps need of earlier ones.

    :param with_types: whether the types of lookups are wanted.
    :param start_decides: a start comes next, and offers ways on: what it would refuse is told, and fails
        nothing.
    :param partitions: of the source topic, once it was seen.
    :param clusters: by connection id, once they were seen.
    :param lookups: by lookup its columns and types, once they were seen: an Arrow schema.
    :param source_schemas: by key and value, what the source is read by, once a registry has told it.
    :param compared: what was compared with the witness by the checks of a connection.
    """

    sink: SinkSpec | None
    witness: Witness | None
    deadline: Deadline
    with_types: bool = False
    start_decides: bool = False
    partitions: int = 0
    clusters: dict[str, str] = field(default_factory=dict)
    lookups: dict[str, bytes] = field(default_factory=dict)
    source_schemas: dict[str, str] = field(default_factory=dict)
    compared: set[Role] = field(default_factory=set)

    def identity_checks(self, checks: Checks) -> IdentityChecks | None:
        """Return what compares outputs with the witness; nothing where there is none."""
        return IdentityChecks(checks, self.witness, self.start_decides) if self.witness else None


ConnectionChecks: TypeAlias = Generator[Check, None, ConnectionOptions | None]
"""Gives checks, and at its end the options by which a target may go on: with the address that was judged."""


class CheckedConnectionType(ConnectionType):
    """A type of connection that a validation can go through."""

    @abstractmethod
    def checks(self, validation: Validation, options: ConnectionOptions) -> ConnectionChecks:
        """Judge one connection, within the time of the validation, without side effects.

        Called by a validation once for each connection, with the text of files in its options.

        :return: nothing where the service was not reached: then the target is not asked.
        :raises SinkError: it could not be asked any further.
        """
