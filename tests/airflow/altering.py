"""An alteration in Airflow's real database by its real API; only the sinks are played.

A played sink does what a real one does, at once: it follows its connection, and is refused by an address that
it cannot use.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from airflow_provider_sinks.clients.airflow_api import AirflowApi
from airflow_provider_sinks.clients.airflow_connections import ConnectionStore
from airflow_provider_sinks.core.alter import dependents
from airflow_provider_sinks.core.alter.backup import Holder
from airflow_provider_sinks.core.alter.changes import Change, SetOption
from airflow_provider_sinks.core.alter.dependents import Dependent, NewestLaunch
from airflow_provider_sinks.core.alter.leave import Leave
from airflow_provider_sinks.core.alter.steps import Wishes
from airflow_provider_sinks.core.connection.fields import ConnectionFields
from airflow_provider_sinks.core.launch.status import SinkState
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.hooks.airflow_account import airflow_api
from airflow_provider_sinks.operators.alter import dependent_sinks, locked_connection
from airflow_provider_sinks.operators.alter.alteration import Alteration, Altered
from airflow_provider_sinks.operators.alter.arguments import AlterOrder
from airflow_provider_sinks.operators.alter.dependent_sinks import DependentSinks
from airflow_provider_sinks.operators.alter.locked_connection import Alterer, LockedConnection
from airflow_provider_sinks.operators.alter.worker_view import view_of
from tests.airflow.api_server import account
from tests.airflow.fakes import SINK

CONN_ID = "kafka_altered"
OLD, NEW = "old:9092", "new:9092"
SECRET = "a secret of the old options"
ME = Holder("ops", "run 1", "alter")
LOG = cast("Any", logging.getLogger("altering"))


KEPT = Leave(keep_secrets=True)
"""The author's own word that the stored password may go elsewhere."""


class KilledError(Exception):
    """Stands for SIGKILL: nobody catches it."""


@dataclass
class PlayedSink:
    """A sink that follows its connection when it sees a new address for the second time.

    :param usable: the addresses that it can run on.
    """

    name: str
    usable: tuple[str, ...] = (OLD, NEW)
    servers: str = OLD
    launch: int = 1
    follows: bool = True
    read: str = OLD

    @property
    def runs(self) -> bool:
        return self.servers in self.usable

    def now(self, servers: str) -> Dependent:
        """Return the sink as it is when its connection leads to ``servers``."""
        is_confirmed, self.read = self.read == servers, servers
        if self.follows and is_confirmed and servers != self.servers:
            self.servers, self.launch = servers, self.launch + 1
        state = SinkState.RUNNING if self.runs else SinkState.FAILED
        error = None if self.runs else {"kind": "ConfigurationError", "primary": "id is denied"}
        seen = NewestLaunch(self.launch, self.launch, state, epoch_done=True, error=error)
        states = ("running",) if self.runs else ("up_for_retry",)
        return Dependent(self.name, SinkSpec.parse(SINK), self.follows, states, paused=False, newest=seen)


class Notes(dict[str, Any]):
    """The state store of a task."""

    def set(self, key: str, value: Any) -> None:
        self[key] = value


class PlayedSinks(DependentSinks):
    """The sinks of the connection."""

    def __init__(self, sinks: list[PlayedSink], notes: Notes, api: AirflowApi) -> None:
        super().__init__(api, CONN_ID, notes, LOG)
        self._played = sinks

    def look(self) -> Iterator[tuple[Dependent, Mapping[str, Any] | None]]:
        servers = servers_of(view_of(CONN_ID))
        for sink in self._played:
            yield sink.now(servers), None


class CutStore(ConnectionStore):
    """The connections of Airflow, until a write: then the task is killed, before the request or after it.

    :param cut: the number of that write, from 1; 0 for never.
    :param error: what happens instead of a kill: no answer from the API.
    """

    def __init__(
        self, api: AirflowApi, cut: int = 0, *, after: bool = False, error: type[Exception] = KilledError
    ) -> None:
        super().__init__(api)
        self._left = cut
        self._after = after
        self._error = error

    def create(self, fields: ConnectionFields, description: str) -> bool:
        return bool(self._write(lambda: super(CutStore, self).create(fields, description)))

    def change(self, fields: ConnectionFields, columns: Any) -> None:
        self._write(lambda: super(CutStore, self).change(fields, columns))

    def describe(self, fields: ConnectionFields, description: str) -> None:
        self._write(lambda: super(CutStore, self).describe(fields, description))

    def delete(self, conn_id: str) -> None:
        self._write(lambda: super(CutStore, self).delete(conn_id))

    def _write(self, write: Callable[[], object]) -> object:
        self._left -= 1
        if self._left == 0 and not self._after:
            raise self._error("before the request")
        result = write()
        if self._left == 0:
            raise self._error("after the request")
        return result


@dataclass
class Altering:
    """One connection with its sinks, altered by one task, try by try."""

    api: AirflowApi
    sinks: list[PlayedSink]
    changes: tuple[Change, ...] = (SetOption("bootstrap.servers", NEW),)
    notes: Notes = field(default_factory=Notes)
    leave: Leave = KEPT

    def try_once(
        self,
        wishes: Wishes | None = None,
        *,
        store: ConnectionStore | None = None,
        me: Holder = ME,
        is_retry: bool = False,
        dry_run: bool = False,
        seconds: float = 5,
    ) -> Altered:
        """Make one try."""
        wishes = wishes or Wishes(validate=False)
        order = AlterOrder(CONN_ID, self.changes, wishes, dry_run, seconds, self.leave)
        sinks = PlayedSinks(self.sinks, self.notes, self.api)
        store = store or ConnectionStore(self.api)
        held = LockedConnection(CONN_ID, store, Alterer(me, is_retry))
        alteration = Alteration(order, held, sinks, LOG)
        return alteration.plan() if dry_run else alteration.run()

    @property
    def now(self) -> ConnectionFields:
        return view_of(CONN_ID)

    @property
    def servers(self) -> str:
        return servers_of(self.now)

    @property
    def before(self) -> Any:
        return self.api.find(f"connections/{CONN_ID}.before")

    def edit(self, **extra: str) -> None:
        """Do what somebody else does in Airflow's UI."""
        body = {"connection_id": CONN_ID, "conn_type": "kafka", "extra": json.dumps({**OPTIONS, **extra})}
        self.api.call("PATCH", f"connections/{CONN_ID}", body, update_mask=["extra"])


OPTIONS = {
    "bootstrap.servers": OLD,
    "client.id": "sinks",
    "security.protocol": "sasl_plaintext",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "old",
    "sasl.password": SECRET,
}


def servers_of(fields: ConnectionFields) -> str:
    """Return the address in a connection."""
    return str(dict(fields.extra or {})["bootstrap.servers"])  # type: ignore[arg-type]


def make(api: AirflowApi) -> None:
    """Make the connection anew."""
    for conn_id in (CONN_ID, f"{CONN_ID}.before"):
        ConnectionStore(api).delete(conn_id)
    ConnectionStore(api).create(
        ConnectionFields(CONN_ID, "kafka", extra=OPTIONS), "the description that stays"
    )


@contextmanager
def played(
    airflow_url: str, connections: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Altering]:
    """Yield three sinks that run on the connection, and can run on the new options too.

    Connections are read from Airflow's database without a task.
    """
    monkeypatch.setenv("_AIRFLOW_PROCESS_CONTEXT", "server")
    monkeypatch.setattr(dependent_sinks, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(dependents, "SETTLED_SECONDS", 0.5)
    monkeypatch.setattr(locked_connection, "_SEEN_SECONDS", 0.1)
    monkeypatch.setattr(locked_connection, "_LOOK_AGAIN_SECONDS", 0.01)
    connections(airflow_api_default=account(airflow_url))
    with airflow_api() as api:
        make(api)
        yield Altering(api, [PlayedSink("a"), PlayedSink("b"), PlayedSink("c")])
