"""One sink's keys on the server, and every act on them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import redis

from airflow_provider_sinks.connectors.epoch_writer import InDoubtError
from airflow_provider_sinks.core.errors import (
    AuthenticationError,
    FencedError,
    RefusedError,
    SinkError,
    UnavailableError,
)
from airflow_provider_sinks.core.progress.record import DRIVER, ProgressFormatError, ProgressRecord, WriterId
from sinks_connector_redis import scripts
from sinks_connector_redis.options import RedisOptions
from sinks_connector_redis.server import answering

_ID = "id"


@dataclass(frozen=True)
class Seen:
    """What was seen of a key.

    :param kind: what Redis calls its type; ``none`` where there is nothing.
    :param id: which one it is; empty where nobody has said.
    """

    kind: str
    id: str
    entries: int = 0


@dataclass(frozen=True)
class Staged:
    """An output, and the rows that wait for it.

    :param key: the stream.
    :param id: which one it must be.
    :param stage: the key of the stream with the rows.
    """

    key: str
    id: str
    stage: str
    rows: int


class Store:
    """See :mod:`.scripts` for what stands where.

    :param place: the key of the progress.
    """

    def __init__(self, client: redis.Redis, options: RedisOptions, place: str, sink: str) -> None:
        self.place = place
        self.stages = f"{place}:stages:{sink}"
        self._client: Any = client  # its own types leave open whether answers are bytes; ours are
        self._options = options
        self._sink = sink

    def look(self, stream: str) -> Seen:
        """Look at a stream."""
        kind, found, entries = self._run(scripts.LOOK, [stream])
        return Seen(kind.decode(), found.decode(), entries)

    def look_at_place(self) -> Seen:
        """Look at the progress place."""
        with answering(self._options):
            kind = str(self._client.type(self.place).decode())
            found = self._client.hget(self.place, _ID) if kind == "hash" else None
        if kind == "hash" and found is None:  # a start has fenced, and nobody has made the place yet
            return Seen("none", "")
        return Seen(kind, found.decode() if found else "")

    def size_bytes(self, stream: str) -> int:
        """Return what a stream takes, about."""
        with answering(self._options):
            return int(self._client.memory_usage(stream) or 0)

    def make_stream(self, stream: str) -> None:
        """Make a stream, unless something is there."""
        self._run(scripts.MAKE_STREAM, [stream], [f"{scripts.GROUP}{uuid.uuid4().hex}"])

    def make_place(self) -> None:
        """Make the progress place, unless it is there."""
        with answering(self._options):
            self._client.hsetnx(self.place, _ID, uuid.uuid4().hex)

    def reset(self, run: str, stream: str, stream_id: str, *, empties: bool) -> None:
        """Empty or delete a stream.

        :raises FencedError: another run is in force.
        :raises RefusedError: it is another one by now.
        """
        given = [self._sink, run, stream_id, "empty" if empties else "delete"]
        answer = self._run(scripts.RESET, [self.place, stream], given)
        if answer[0] == b"run":
            self._demand(answer, run, DRIVER)
        if answer[0] != b"ok":
            raise RefusedError(f'stream "{stream}" is not the one any more that was looked at')

    def take_run(self, run: str) -> None:
        """Put a run in force: nobody else of the sink commits from here on."""
        with answering(self._options):
            self._client.hset(self.place, f"{self._sink}/run", run)

    def demand_run(self, run: str) -> None:
        """Raise :class:`FencedError` when another run is in force."""
        with answering(self._options):
            found = self._client.hget(self.place, f"{self._sink}/run")
        self._demand([b"ok"] if found == run.encode() else [b"run", found or b"none"], run, DRIVER)

    def take_writer(self, run: str, writer: WriterId, holder: str) -> ProgressRecord | None:
        """Give a writer's next record to a new holder, and return its last one."""
        answer = self._run(scripts.TAKE_WRITER, [self.place], [self._sink, run, writer, holder])
        self._demand(answer, run, writer)
        return self._decoded(answer[1]) if answer[1] else None

    def announce(self, run: str, record: ProgressRecord) -> None:
        """Write the driver's record; the same one again changes nothing."""
        self._demand(
            self._run(scripts.ANNOUNCE, [self.place], [self._sink, run, DRIVER, record.encode()]), run, DRIVER
        )

    def records(self) -> dict[WriterId, ProgressRecord]:
        """Return the last record of each writer."""
        with answering(self._options):
            fields: Mapping[bytes, bytes] = self._client.hgetall(self.place)
        begin = f"{self._sink}/record/"
        found = {name.decode(): record for name, record in fields.items()}
        return {
            name.removeprefix(begin): self._decoded(record)
            for name, record in found.items()
            if name.startswith(begin)
        }

    def stage(self, staged: str, entries: Sequence[Mapping[bytes, bytes]]) -> None:
        """Add entries to a stage, which is known for a sweep before it holds any."""
        with answering(self._options):
            pipeline = self._client.pipeline(transaction=False)
            pipeline.sadd(self.stages, staged)
            for entry in entries:
                pipeline.xadd(staged, dict(entry))
            pipeline.execute()

    def drop_stages(self, stages: Sequence[str]) -> None:
        """Remove stages."""
        if stages:
            with answering(self._options):
                self._client.unlink(*stages)
                self._client.srem(self.stages, *stages)

    def all_stages(self) -> list[str]:
        """Return the keys of all stages of the sink."""
        with answering(self._options):
            return [stage.decode() for stage in self._client.smembers(self.stages)]

    def commit(
        self,
        run: str,
        writer: WriterId,
        holders: tuple[str, str],
        record: ProgressRecord,
        outputs: Sequence[Staged],
        *,
        max_length: int | None,
    ) -> None:
        """Make staged rows and the record visible by one script.

        :param holders: of this record, and of the next.
        :param outputs: the stream of the rows first.
        :raises InDoubtError: no answer.
        :raises FencedError: another run is in force.
        :raises UnavailableError: nothing has changed; an attempt behind this one may do better.
        """
        keys = [self.place, self.stages, *(key for output in outputs for key in (output.key, output.stage))]
        most = "" if max_length is None else max_length
        given = [self._sink, run, writer, *holders, record.encode(), most]
        given += [part for output in outputs for part in (output.id, output.rows)]
        try:
            answer = self._client.register_script(scripts.COMMIT)(keys, given)
        except (redis.ConnectionError, redis.TimeoutError) as error:
            raise InDoubtError(
                f'a commit of sink "{self._sink}", writer {writer}, was not answered',
                f"{type(error).__name__}: {error}",
                "The progress tells: nothing is written twice.",
            ) from error
        except redis.RedisError:
            with answering(self._options):
                raise
        self._demand(answer, run, writer)

    def _run(self, script: str, keys: Sequence[str], given: Sequence[str | bytes | int] = ()) -> Any:
        with answering(self._options):
            return self._client.register_script(script)(list(keys), list(given))

    def _demand(self, answer: Sequence[bytes], run: str, writer: WriterId) -> None:
        said, told = answer[0].decode(), answer[1].decode() if len(answer) > 1 else ""
        if said != "ok":
            raise self._refusal(said, told, run, writer)

    def _refusal(self, said: str, told: str, run: str, writer: WriterId) -> SinkError:
        who = f'writer {writer} of sink "{self._sink}"'
        match said:
            case "run":
                return FencedError(
                    f'a newer start of sink "{self._sink}" took over',
                    f"Run {told} is in force; this is run {run}.",
                )
            case "holder":
                return UnavailableError(f"{who} was fenced by another attempt")
            case "other":
                return UnavailableError(f'stream "{told}" is not the one any more that the sink began with')
            case "stage":
                return UnavailableError(f"rows that {who} had staged are gone", f"Stage {told}.")
            case _ if told.startswith("NOPERM"):
                return AuthenticationError(f"{who} may not write", told, "See the rights in the README.")
            case _:
                return UnavailableError(f"Redis took no rows of {who}", told)

    def _decoded(self, record: bytes) -> ProgressRecord:
        try:
            return ProgressRecord.decode(record)
        except ProgressFormatError as error:
            raise UnavailableError(
                f'the progress of sink "{self._sink}" cannot be read', str(error)
            ) from error
