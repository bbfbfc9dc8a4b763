"""What Airflow remembers of a sink between its launches: the witness, the owner and the count of launches.

It is one JSON object under the key ``witness`` of the asset ``sink:<name>``: the witness's fields, with
``owner``, ``launch`` (the number of the newest launch) and ``home`` (the task that began it) there from the
first start on. Airflow deletes an asset's store about a minute after the last DAG that names it is gone or
fails to import, so each write also goes to the Variable ``sinks.<name>.witness``; the newer copy counts. What
is only shown stands beside it (:mod:`.shown_status`).

A memory that cannot be read is not an empty one: the decision that a sink never wrote hangs on it.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow.sdk import Variable

from airflow_provider_sinks.core.errors import UnavailableError
from airflow_provider_sinks.core.launch.home import Home, demand_own
from airflow_provider_sinks.core.launch.status import SinkStatus
from airflow_provider_sinks.core.progress.witness import Witness
from airflow_provider_sinks.metadata.shown_status import ShownStatus
from airflow_provider_sinks.metadata.store import KEY, Store, attempt

if TYPE_CHECKING:
    from airflow.sdk.types import Logger

STORE_BYTES_MAX = 60_000
"""Airflow takes 64 KiB; a witness of a source with thousands of partitions is only in the Variable then."""
OWNER_VARIABLE = "sinks.owner"
OWNER_SETTLES_SECONDS = 1.0
"""Longer than a task takes from finding no owner to having written one."""


@dataclass(frozen=True)
class Memory:
    """What is remembered of a sink.

    :param owner: whose sink it is: random text, made once per Airflow.
    :param launch: the number of the newest launch; 0 before the first.
    :param witness: the newest progress that a job reported, or ``None`` before the first report.
    :param home: the task that began the newest launch, or ``None`` where it was not noted down.
    """

    owner: str = ""
    launch: int = 0
    witness: Witness | None = None
    home: Home | None = None

    @property
    def order(self) -> tuple[int, int, int]:
        """What two copies are compared by."""
        generation, epoch = self.witness.order if self.witness else (0, 0)
        return generation, epoch, self.launch

    def to_mapping(self) -> dict[str, Any]:
        """Return the JSON object that is stored."""
        witness = json.loads(self.witness.to_json()) if self.witness else {}
        home = {"home": asdict(self.home)} if self.home else {}
        return {**witness, "owner": self.owner, "launch": self.launch, **home}

    @classmethod
    def from_mapping(cls, data: Mapping[str, Any]) -> Memory:
        """Read back what :meth:`to_mapping` returned."""
        told = {name: value for name, value in data.items() if name != "home"}
        witness = Witness.from_mapping(told) if "generation" in told else None
        home = Home(**data["home"]) if "home" in data else None
        return cls(data["owner"], data["launch"], witness, home)

    @classmethod
    def newest(cls, copies: Iterable[Any]) -> Memory:
        """Return the newest of some copies, as JSON text or parsed; the count of launches never goes back.

        The home is that of the first copy: of the Variable, which fewer people may write.
        """
        known = [_parse(copy) for copy in copies] or [cls()]
        newest = max(known, key=lambda memory: memory.order)
        return replace(newest, launch=max(memory.launch for memory in known), home=known[0].home)


class SinkMemory:
    """Read and write the memory of one sink, in both its places.

    :param sink: the sink's name.
    :param store: the state store of the sink's asset, or ``None`` when the task does not name the asset.
    :param log: takes warnings about writes that failed.
    :param follows: whether the sink launches again when a connection changes; others are told.
    :param home: the task that launches it; ``None`` for who launches nothing.
    :param own: where the task is a form's, the names of sinks that are certainly its own; else ``None``.
    """

    def __init__(
        self,
        sink: str,
        store: Store | None,
        log: Logger,
        *,
        follows: bool = True,
        home: Home | None = None,
        own: Collection[str] | None = None,
    ) -> None:
        self._sink = sink
        self._store = store
        self._log = log
        self._shown = None if store is None else ShownStatus(sink, store, log, follows=follows)
        self._home = home
        self._own = own
        self._variable = f"sinks.{sink}.witness"

    def recall(self) -> Memory:
        """Return the newer copy; a sink without one belongs to this Airflow, and has never been launched.

        :raises UnavailableError: a copy could not be read, so that "nothing is remembered" would be a guess.
        """
        with _readable(self._sink):
            memory = Memory.newest(copy for copy in (_variable(self._variable), self._from_store()) if copy)
            return memory if memory.owner else replace(memory, owner=_owner())

    def witness(self) -> Witness | None:
        """Return the newest progress that was reported, for who only looks; ``None`` if it cannot be read."""
        newest = self._newest()
        return newest.witness if newest is not None else None

    def newest_launch(self) -> int:
        """Return the number of the newest launch that anybody began; 0 where that cannot be read now."""
        newest = self._newest()
        return newest.launch if newest is not None else 0

    def begin_launch(self) -> Memory:
        """Count a new launch, and return the new memory.

        :raises ConfigurationError: the task is a form's, and the sink is not.
        """
        memory = self.recall()
        if self._own is not None and self._home is not None:
            demand_own(self._sink, self._home, memory.home, is_new=not memory.launch, own=self._own)
        begun = replace(memory, launch=memory.launch + 1, home=self._home)
        self._write(begun)
        return begun

    def keep(self, witness: Witness) -> bool:
        """Write a witness to both places; a place that fails is a warning.

        The count of launches never goes back, nor does the home: a launch that is being taken over still
        reports for a while. Where they cannot be read now, the Variable that has them stays as it is.

        :return: whether both writes succeeded.
        """
        newest = self._newest()
        if newest is None:
            self._write_to_store(Memory(witness.owner, witness.launch, witness))
            return False
        launch = max(witness.launch, newest.launch)
        return self._write(Memory(witness.owner, launch, witness, newest.home or self._home))

    def _newest(self) -> Memory | None:
        """Return what the newest launch noted down; ``None`` where that cannot be read now.

        Asks for the Variable alone: a task that was cleared has lost the right to read its asset's store.
        """
        try:
            copy = _variable(self._variable)
            return _parse(copy) if copy else Memory()
        except Exception as error:  # noqa: BLE001  a sink does not stop because its memory is away
            self._log.info("the newest launch of sink %s cannot be read: %s", self._sink, error)
            return None

    def show(self, status: SinkStatus) -> bool:
        """Write the newest status where everybody may read it; a failure is a warning.

        :return: whether it was written.
        """
        return self._shown is None or self._shown.show(status)

    def _from_store(self) -> Any:
        return None if self._store is None else self._store.get(KEY)

    def _write(self, memory: Memory) -> bool:
        text = json.dumps(memory.to_mapping(), sort_keys=True)
        description = f"Progress of sink {self._sink}, second copy; the first is in the store of its asset."
        write = partial(Variable.set, self._variable, text, description)
        written = attempt(self._log, self._sink, "witness", "Variable", write)
        return written & self._write_to_store(memory)

    def _write_to_store(self, memory: Memory) -> bool:
        value, store = memory.to_mapping(), self._store
        if store is None or len(json.dumps(value, sort_keys=True)) > STORE_BYTES_MAX:
            return True
        return attempt(self._log, self._sink, "witness", "asset store", lambda: store.set(KEY, value))


def _variable(key: str) -> Any:
    """Return a Variable, or ``None`` if there is none; for ``Variable.get`` a failure looks the same."""
    if key not in Variable.keys(prefix=key):
        return None
    return Variable.get(key)


def _owner() -> str:
    """Return whose sinks these are; made up once per Airflow, by whoever asks first.

    Airflow has no "write if absent". So whoever made one up waits before reading it back: of several tasks
    that found none and wrote within that time, all read the one that was written last.
    """
    known = _variable(OWNER_VARIABLE)
    if not known:
        description = "Whose sinks these are; made once per Airflow. Written into their progress records."
        Variable.set(OWNER_VARIABLE, uuid.uuid4().hex, description)
        time.sleep(OWNER_SETTLES_SECONDS)
        known = _variable(OWNER_VARIABLE)
    return str(known)


def _parse(copy: Any) -> Memory:
    return Memory.from_mapping(json.loads(copy) if isinstance(copy, str) else copy)


@contextmanager
def _readable(sink: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise UnavailableError(
            f'Airflow\'s memory of sink "{sink}" could not be read',
            detail=f"{type(error).__name__}: {error}",
            hint=f"It is in the state store of asset sink:{sink} and in the Variable sinks.{sink}.witness.",
        ) from error
