"""The Redis target of one sink, on the driver: looks, fences, announces, resets. Executors commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from airflow_provider_sinks.connectors.base import Capabilities, CommitsOn, Health, MetricValue, Run, Say
from airflow_provider_sinks.connectors.plain import PlainConnector
from airflow_provider_sinks.core.decision.facts import (
    Creation,
    Existence,
    Observation,
    ResourceFacts,
    Role,
    Unfit,
)
from airflow_provider_sinks.core.errors import ConfigurationError, Problem, SinkError
from airflow_provider_sinks.core.lifecycle.steps import DeleteOutput, EmptyOutput
from airflow_provider_sinks.core.progress.history import NO_HISTORY, History
from airflow_provider_sinks.core.progress.identity import ResourceKind
from airflow_provider_sinks.core.progress.record import ProgressRecord, WriterId
from sinks_connector_redis import server
from sinks_connector_redis.options import RedisOptions
from sinks_connector_redis.spec import RedisSink
from sinks_connector_redis.store import Seen, Store
from sinks_connector_redis.writer import RedisWriterFactory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SYSTEM = "redis"
_TIMEOUT = timedelta(minutes=15)


class RedisConnector(PlainConnector):
    """See :class:`.base.SinkConnector` for who calls what.

    :param options: how to connect; holds secrets.
    :param say: told what a person should know.
    """

    def __init__(self, spec: RedisSink, options: RedisOptions, say: Say = lambda _: None) -> None:
        self._spec = spec
        self._names = spec.resources
        self._options = options
        self._say = say
        self._run: Run | None = None
        self._generation = 0
        self._version = ""
        self._client = server.make_client(options)
        self._store = Store(self._client, options, self._names[Role.PROGRESS], spec.name)

    @property
    def service(self) -> str:
        """Who is asked."""
        return f"Redis at {self._options.summary}"

    def capabilities(self) -> Capabilities:
        """Return that each writer commits by itself."""
        return Capabilities(CommitsOn.EXECUTOR)

    def suggested_timeout(self) -> timedelta:
        """Return how long an epoch may be open; nothing here ends one."""
        return _TIMEOUT

    def project(self, output: DataFrame) -> DataFrame:
        """Return each column as text, and bytes as they are."""
        from sinks_connector_redis.encoding import encode

        return encode(output, keeps_raw=Role.DEAD_LETTER in self._names)

    def observe(self, source: ResourceFacts) -> Observation:
        """Look at the keys, and read the progress. Changes nothing."""
        seen = self.identify()
        history, sized = NO_HISTORY, dict(seen)
        if seen[Role.PROGRESS].existence is Existence.PRESENT and not seen[Role.PROGRESS].unfit:
            history = self.progress()
        for role in (Role.DATA, Role.DEAD_LETTER):
            if role in seen and self._store.look(self._names[role]).entries:
                sized[role] = replace(seen[role], size_bytes=self._store.size_bytes(self._names[role]))
        return Observation(
            source, sized[Role.DATA], seen[Role.PROGRESS], sized.get(Role.DEAD_LETTER), history
        )

    def identify(self) -> Mapping[Role, ResourceFacts]:
        """Look at the keys."""
        outputs = {role: self._facts(role, self._store.look(name)) for role, name in self._names.items()}
        return {**outputs, Role.PROGRESS: self._facts(Role.PROGRESS, self._store.look_at_place())}

    def open(self, run: Run, writers: Iterable[WriterId], looked: Observation) -> bool:
        """Put this run in force, once. That fences every older driver and all of its writers."""
        del writers, looked
        if self._run is not None and self._run.id == run.id:
            self.demand_in_force()
            return True
        self._demand_good_server()
        self._store.take_run(run.id)
        self._run = run
        return False

    def ensure(self, creation: Creation) -> None:
        """Make a stream or the progress place, unless it is there."""
        if creation.role is Role.PROGRESS:
            self._store.make_place()
        else:
            self._store.make_stream(creation.name)

    def announce(self, record: ProgressRecord) -> None:
        """Write the driver's record."""
        self._store.announce(self._live_run.id, record)
        self._generation = record.generation

    def demand_in_force(self) -> None:
        """Raise :class:`FencedError` when a newer run took over."""
        self._store.demand_run(self._live_run.id)

    def factory(self) -> RedisWriterFactory:
        """Return what makes the writers of the announced run."""
        told = self._live_run.circumstances(self._generation)
        roles = [role for role in (Role.DATA, Role.DEAD_LETTER) if role in self._names]
        return RedisWriterFactory(
            self._options,
            self._store.place,
            self._spec.name,
            self._live_run.id,
            self._generation,
            {self._names[role]: self._store.look(self._names[role]).id for role in roles},
            self._spec.target.redis.max_length,
            {"sink": told.sink, "source_topic": told.source, "generation": str(told.generation)},
        )

    def progress(self) -> History:
        """Read the last record of each writer."""
        return History(self._store.records())

    def sweep(self) -> None:
        """Remove what older runs staged: they cannot commit it any more."""
        begin = f"{self._store.place}:stage:{self._spec.name}:{self._live_run.id}:"
        left = [stage for stage in self._store.all_stages() if not stage.startswith(begin)]
        self.demand_in_force()  # behind the listing: what a newer run stages is not in it then
        self._store.drop_stages(left)

    def reset(self, step: EmptyOutput | DeleteOutput) -> None:
        """Empty a stream or delete it, if it is still the one that was looked at."""
        empties = isinstance(step, EmptyOutput)
        self._store.reset(self._live_run.id, step.facts.name, step.facts.id, empties=empties)

    def health_check(self) -> Health:
        """Return whether the server answers."""
        try:
            with server.answering(self._options):
                self._client.ping()
        except SinkError as error:
            return Health(False, error.detail)
        return Health(True)

    def metrics(self) -> Mapping[str, MetricValue]:
        """Return the server's version."""
        return {"server_version": self._version}

    def close(self) -> None:
        """Drop the connections."""
        self._client.close()

    @property
    def _live_run(self) -> Run:
        assert self._run is not None  # noqa: S101  open comes first
        return self._run

    def _demand_good_server(self) -> None:
        version = server.version(self._client, self._options)
        self._version = ".".join(map(str, version))
        if version < server.VERSION_MIN:
            needed = ".".join(map(str, server.VERSION_MIN))
            problem = Problem(self._options.conn_id, f"leads to Redis {self._version}", f"{needed} or newer")
            raise ConfigurationError("the server is too old", [problem])
        if doubt := server.durability_doubt(self._client, self._options):
            self._say(f"{self.service} may lose what it acknowledged: {doubt}. Set {server.DURABILITY_HINT}.")

    def _facts(self, role: Role, seen: Seen) -> ResourceFacts:
        facts = ResourceFacts(self._names[role], Existence.MISSING, _SYSTEM, kind=ResourceKind.TABLE)
        if seen.kind == "none":
            return facts
        return replace(facts, existence=Existence.PRESENT, id=seen.id, unfit=_unfit(facts.name, role, seen))


def _unfit(name: str, role: Role, seen: Seen) -> Unfit | None:
    wanted = "hash" if role is Role.PROGRESS else "stream"
    if seen.kind != wanted:
        return Unfit(f"is a {seen.kind}", f"A sink needs a {wanted} there.", "Name another key.")
    if not seen.id:
        return Unfit(
            "has no identity",
            "A stream that no sink has made looks the same when somebody deletes it and makes another.",
            f"Give it one: XGROUP CREATE {name} _sinks:adopted-1 $, with a word that was never used before.",
        )
    return None
