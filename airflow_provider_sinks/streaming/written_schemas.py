"""By which schemas the records of a source were written: asked of the registry when one is met, and kept.

An id that the registry does not know is asked for again, for a few seconds: registries copy what they learn,
and a producer may be faster. Then its records are set aside, and after a while the registry is asked anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from airflow_provider_sinks.clients.schema_registry.client import SchemaRegistry
from airflow_provider_sinks.clients.schema_registry.schemas import StoredSchema
from airflow_provider_sinks.clients.wait import holds_within
from airflow_provider_sinks.connectors.schema_registry.source_schemas import ReaderSchema
from airflow_provider_sinks.core.schemas.avro import parse
from airflow_provider_sinks.core.schemas.avro_types import AvroSchema
from airflow_provider_sinks.core.schemas.compatibility import unreadable
from airflow_provider_sinks.core.schemas.subjects import Part
from airflow_provider_sinks.core.spec.problems import UnfitPartsError
from airflow_provider_sinks.streaming.avro_values import UNKNOWN_ID, WrittenAs
from airflow_provider_sinks.streaming.driver_log import say
from airflow_provider_sinks.streaming.patience import Patience

T = TypeVar("T")

WAIT_SECONDS = 5.0
"""How long ids may take to become known: all of them together, in :data:`FORGET_SECONDS`."""
FORGET_SECONDS = 60.0
"""After so long the registry is asked again about an id that it did not know."""
_AGAIN_SECONDS = 0.5
_FORESEEN_MAX = 20


class WrittenSchemas:
    """The schemas of one source, on the driver.

    :param readers: what the sink reads by.
    :param patience: for a registry that does not answer.
    """

    def __init__(self, registry: SchemaRegistry, readers: Sequence[ReaderSchema], patience: Patience) -> None:
        self._registry = registry
        self._readers = {reader.part: reader for reader in readers}
        self._patience = patience
        self._known: dict[Part, dict[int, AvroSchema | str]] = {part: {} for part in self._readers}
        self._unknown_since: dict[tuple[Part, int], float] = {}
        self._waited: list[tuple[float, float]] = []

    def foresee(self) -> None:
        """Ask for the newest schemas under the source's subjects, so that no epoch has to fail for them."""
        for part, reader in self._readers.items():
            for stored in self._ask(lambda reader=reader: self._newest(reader.subject)):  # type: ignore[misc]
                self._known[part][stored.id] = self._judged(part, stored)

    def reader(self, part: Part) -> AvroSchema | None:
        """Return what a part is read by; ``None`` where no registry has a schema of it."""
        return self._readers[part].schema if part in self._readers else None

    def known(self, part: Part) -> WrittenAs:
        """Return what is known of a part, for one epoch."""
        now = time.monotonic()
        for (of, schema_id), since in list(self._unknown_since.items()):
            if now - since > FORGET_SECONDS:
                del self._unknown_since[of, schema_id]
                self._known[of].pop(schema_id, None)
        return dict(self._known.get(part, {}))

    def learns(self, error: BaseException) -> bool:
        """Ask for the schema that a task met, and return whether that was why it failed.

        :raises UnavailableError: the registry did not answer for longer than one may wait.
        """
        met = {(Part(found["part"]), int(found["id"])) for found in UNKNOWN_ID.finditer(str(error))}
        new = [(part, schema_id) for part, schema_id in sorted(met) if schema_id not in self._known[part]]
        for part, schema_id in new:
            self._known[part][schema_id] = self._settled(part, schema_id)
        return bool(new)

    def close(self) -> None:
        """End the client."""
        self._registry.close()

    def _settled(self, part: Part, schema_id: int) -> AvroSchema | str:
        found: list[StoredSchema] = []

        def is_known() -> bool:
            stored = self._ask(lambda: self._registry.by_id(schema_id))
            found.extend([stored] if stored is not None else [])
            return bool(found)

        begun = time.monotonic()
        is_there = holds_within(is_known, self._wait_left_seconds, pause_seconds=_AGAIN_SECONDS)
        self._waited.append((begun, time.monotonic() - begun))
        if is_there:
            return self._judged(part, found[0])
        self._unknown_since[part, schema_id] = time.monotonic()
        say(f"schema id {schema_id} of a {part} is not known to {self._registry.service}")
        return f"has schema id {schema_id}, which {self._registry.service} does not know"

    @property
    def _wait_left_seconds(self) -> float:
        """How long one may wait now: whoever writes many ids that nobody knows stops no sink by it."""
        now = time.monotonic()
        self._waited = [(at, seconds) for at, seconds in self._waited if now - at < FORGET_SECONDS]
        return max(0.0, WAIT_SECONDS - sum(seconds for _, seconds in self._waited))

    def _judged(self, part: Part, stored: StoredSchema) -> AvroSchema | str:
        """Return a writer's schema, or why nothing that was written by it can be read."""
        if stored.kind != "AVRO":
            return f"has schema id {stored.id}, which is of kind {stored.kind}"
        try:
            writer = parse(stored.text, stored.referred)
        except UnfitPartsError as unfit:
            return f"has schema id {stored.id}, which is no schema: {unfit}"
        why = unreadable(self._readers[part].schema, writer)
        return f"has schema id {stored.id}, which cannot be read: {'; '.join(why)}" if why else writer

    def _newest(self, subject: str) -> list[StoredSchema]:
        versions = sorted(self._registry.versions(subject), reverse=True)[:_FORESEEN_MAX]
        found = (self._registry.version(subject, version) for version in versions)
        return [stored for stored in found if stored is not None]

    def _ask(self, question: Callable[[], T]) -> T:
        return self._patience.ask(self._registry.service, question)
