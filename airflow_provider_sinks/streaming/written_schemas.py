"""By which schemas the records of a source were written: asked of the registry when one is met, and kept.

An id that the registry does not know is asked for again, for a few seconds: registries copy what they learn,
and a producer may be faster. Then its records are set aside, and after a while the registry is asked anew.

Each id that has not been asked for costs one more try of the epoch. So that an epoch ends: what is known of
an id stays so until the epoch is whole, however long it takes, and once an epoch has met :data:`UNKNOWN_MAX`
unknown ids, it asks for no further one. A topic of something that only looks like the wire format, such as
Avro without a header, has another id in each record.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from airflow_provider_sinks.clients.schema_registry.client import RefusedQuestionError, SchemaRegistry
from airflow_provider_sinks.clients.schema_registry.schemas import StoredSchema
from airflow_provider_sinks.clients.wait import holds_within
from airflow_provider_sinks.connectors.schema_registry.source_schemas import (
    ReaderSchema,
    added_since,
    newest,
    written_by,
)
from airflow_provider_sinks.core.errors import JobFailedError
from airflow_provider_sinks.core.evolution import OPTION, OnSchemaChange
from airflow_provider_sinks.core.schemas.languages import RegisteredSchema
from airflow_provider_sinks.core.schemas.subjects import Part
from airflow_provider_sinks.streaming.driver_log import say
from airflow_provider_sinks.streaming.patience import Patience
from airflow_provider_sinks.streaming.wire_values import UNKNOWN_ID, WrittenAs

T = TypeVar("T")

WAIT_SECONDS = 5.0
"""How long ids may take to become known: all of them together, in :data:`FORGET_SECONDS`."""
FORGET_SECONDS = 60.0
"""After so long the registry is asked again about an id that it did not know."""
UNKNOWN_MAX = 8
"""So many ids that the registry does not know are asked for in one epoch; others are set aside unasked."""
_REMEMBERED_MAX = 64
"""So many of them are known longer than their epoch: each is a branch of the expression that reads."""
_AGAIN_SECONDS = 0.5


class WrittenSchemas:
    """The schemas of one source, on the driver.

    :param readers: what the sink reads by.
    :param patience: for a registry that does not answer.
    :param policy: what may become of the target where the source has got columns that a star in the query
        takes.
    """

    def __init__(
        self,
        registry: SchemaRegistry,
        readers: Sequence[ReaderSchema],
        patience: Patience,
        policy: OnSchemaChange = OnSchemaChange.REFUSE,
    ) -> None:
        self._policy = policy
        self._told_added: set[tuple[Part, str]] = set()
        self._registry = registry
        self._readers = {reader.part: reader for reader in readers}
        self._patience = patience
        self._known: dict[Part, dict[int, RegisteredSchema | str]] = {part: {} for part in self._readers}
        self._unknown_since: dict[tuple[Part, int], float] = {}
        self._waited: list[tuple[float, float]] = []
        self._unknown_in_epoch = 0

    def foresee(self) -> None:
        """Ask for the newest schemas under the source's subjects, so that no epoch has to fail for them.

        :raises JobFailedError: one came behind the look that said what is read by: see :meth:`learns`.
        """
        for part, reader in self._readers.items():
            for stored in self._ask(partial(self._newest, reader.subject)):
                self._known[part][stored.id] = written_by(reader, stored)
            self._look_for_more(reader)

    def reader(self, part: Part) -> RegisteredSchema | None:
        """Return what a part is read by; ``None`` where no registry has a schema of it."""
        return self._readers[part].schema if part in self._readers else None

    def known(self, part: Part) -> WrittenAs:
        """Return what is known of a part, for one try of an epoch."""
        others = ""
        if self._unknown_in_epoch >= UNKNOWN_MAX:
            others = (
                f"which was not asked for: {self._registry.service} did not know "
                f"{self._unknown_in_epoch} others of the same epoch"
            )
        return WrittenAs(dict(self._known.get(part, {})), others)

    def epoch_is_whole(self) -> None:
        """Forget what the registry did not know a while ago: it is asked anew. Called between epochs."""
        self._unknown_in_epoch = 0
        now = time.monotonic()
        oldest_first = sorted(self._unknown_since.items(), key=lambda item: item[1])
        too_many = len(oldest_first) - _REMEMBERED_MAX
        for place, ((of, schema_id), since) in enumerate(oldest_first):
            if place < too_many or now - since > FORGET_SECONDS:
                del self._unknown_since[of, schema_id]
                self._known[of].pop(schema_id, None)

    def learns(self, error: BaseException) -> bool:
        """Ask for the schema that a task met, and return whether that was why it failed.

        :raises UnavailableError: the registry did not answer for longer than one may wait.
        :raises JobFailedError: the next launch reads more columns, and the target may get them: what was
            written by that schema is left to it.
        """
        met = {(Part(found["part"]), int(found["id"])) for found in UNKNOWN_ID.finditer(str(error))}
        new = [(part, schema_id) for part, schema_id in sorted(met) if schema_id not in self._known[part]]
        for part, schema_id in new:
            self._known[part][schema_id] = self._settled(part, schema_id)
        for part in dict.fromkeys(part for part, _ in new):
            self._look_for_more(self._readers[part])
        return bool(new)

    def close(self) -> None:
        """End the client."""
        self._registry.close()

    def _settled(self, part: Part, schema_id: int) -> RegisteredSchema | str:
        found: list[StoredSchema] = []

        def is_known() -> bool:
            stored = self._ask(lambda: self._registry.by_id(schema_id))
            found.extend([stored] if stored is not None else [])
            return bool(found)

        begun = time.monotonic()
        try:
            is_there = holds_within(is_known, self._wait_left_seconds, pause_seconds=_AGAIN_SECONDS)
        except RefusedQuestionError as refused:
            self._note_unknown(part, schema_id)
            return f"has schema id {schema_id}: {' '.join(f'{refused.primary} {refused.detail}'.split())}"
        finally:
            self._waited.append((begun, time.monotonic() - begun))
        if is_there:
            return written_by(self._readers[part], found[0])
        self._note_unknown(part, schema_id)
        say(f"schema id {schema_id} of a {part} is not known to {self._registry.service}")
        return f"has schema id {schema_id}, which {self._registry.service} does not know"

    def _look_for_more(self, reader: ReaderSchema) -> None:
        """Tell of columns that another start would read: in an epoch of which nothing is committed."""
        version, added = self._ask(lambda: added_since(reader, self._registry))
        new = [name for name in added if (reader.part, name) not in self._told_added]
        if not new:
            return
        self._told_added |= {(reader.part, name) for name in new}
        names = ", ".join(map(repr, new))
        what = f'version {version} of subject "{reader.subject}" has {names}, which this launch does not read'
        if self._policy.adds:
            raise JobFailedError(
                f"the source's {reader.part} has got more columns since the launch began",
                f"{what[0].upper()}{what[1:]}. Nothing that was written by it is committed.",
                f"The next launch reads by it, and alters the target as {OPTION} is {self._policy}.",
            )
        say(f"{what}: it goes on without; the next one reads by that version")

    def _note_unknown(self, part: Part, schema_id: int) -> None:
        self._unknown_since[part, schema_id] = time.monotonic()
        self._unknown_in_epoch += 1

    @property
    def _wait_left_seconds(self) -> float:
        """How long one may wait now: whoever writes many ids that nobody knows stops no sink by it."""
        now = time.monotonic()
        self._waited = [(at, seconds) for at, seconds in self._waited if now - at < FORGET_SECONDS]
        return max(0.0, WAIT_SECONDS - sum(seconds for _, seconds in self._waited))

    def _newest(self, name: str) -> list[StoredSchema]:
        return list(newest(self._registry, name))

    def _ask(self, question: Callable[[], T]) -> T:
        return self._patience.ask(self._registry.service, question)
