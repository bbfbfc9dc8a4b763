"""What is seen of where the rows go: a folder of files, a table behind JDBC, or what nobody can look at."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol

from airflow_provider_sinks.connectors.postgres.options import PostgresOptions
from airflow_provider_sinks.connectors.spark_format.storage import Storage, answering, plain
from airflow_provider_sinks.core.decision.facts import Existence, ResourceFacts, Role, Unfit
from airflow_provider_sinks.core.errors import RefusedError, UnavailableError
from airflow_provider_sinks.core.progress.identity import ResourceKind

MARK: Final = "_sinks_output.json"
"""Tells whose folder it is, and this one from another of its name; readers skip what begins with ``_``."""
_LOG: Final = "_spark_metadata"
_COMPACT: Final = ".compact"


class Output(Protocol):
    """Where the rows of a sink go."""

    def facts(self, *, with_size: bool = False) -> ResourceFacts:
        """Return what was seen of it. Not being able to see it is an answer too."""

    def ensure(self) -> None:
        """Make it, unless it is there.

        :raises UnavailableError: that did not work out.
        """

    def newest_batch(self) -> int | None:
        """Return the newest batch that Spark itself remembers to be in it; ``None`` where it remembers none.

        :raises UnavailableError: that could not be seen.
        """

    def columns(self) -> Mapping[str, str]:
        """Return the types of its columns; empty where it takes any."""

    def empty(self, output: str) -> None:
        """Remove all rows of it, if it still has this id.

        :param output: the id.
        :raises RefusedError: it is another one by now.
        """

    def delete(self, output: str) -> None:
        """Remove it, if it still has this id.

        :raises RefusedError: it is another one by now.
        """


@dataclass(frozen=True)
class FolderOutput:
    """A folder that Spark's file sink writes.

    :param sink: the sink's name.
    """

    storage: Storage
    folder: str
    sink: str

    def facts(self, *, with_size: bool = False) -> ResourceFacts:
        """Look for the mark; what lies in a folder without one is not ours to hide from its readers."""
        facts = ResourceFacts(self.folder, Existence.UNKNOWN, self._system, kind=ResourceKind.FOLDER)
        try:
            with answering(self.folder):
                mark = self.storage.read(f"{self.folder}/{MARK}")
                sizes = self.storage.sizes(self.folder) or {} if with_size or mark is None else {}
        except UnavailableError as error:
            return replace(facts, reason=error.detail)
        if mark is None:
            foreign = sorted(name for name in sizes if name == _LOG or name[0] not in "._")
            if not foreign:
                return replace(facts, existence=Existence.MISSING)
            return replace(facts, existence=Existence.PRESENT, unfit=_not_empty(foreign[0]))
        own, unfit = _told(mark, self.sink)
        size = sum(size for name, size in sizes.items() if name[0] not in "._")
        return replace(facts, existence=Existence.PRESENT, id=own, unfit=unfit, size_bytes=size)

    def ensure(self) -> None:
        """Leave the mark."""
        with answering(self.folder):
            mark = json.dumps({"id": uuid.uuid4().hex, "sink": self.sink})
            self.storage.create(f"{self.folder}/{MARK}", mark.encode())

    def newest_batch(self) -> int | None:
        """Look into the log of Spark's file sink."""
        with answering(self.folder):
            names = self.storage.sizes(f"{self.folder}/{_LOG}") or {}
        numbers = [name.removesuffix(_COMPACT) for name in names]
        return max((int(number) for number in numbers if number.isdigit()), default=None)

    def columns(self) -> Mapping[str, str]:
        """Return nothing: files have the columns of the query."""
        return {}

    def empty(self, output: str) -> None:
        """Remove everything but the mark; the log goes first, so that no reader misses a file of it."""
        self._demand(output)
        with answering(self.folder):
            names = self.storage.sizes(self.folder) or {}
            for name in sorted(set(names) - {MARK}, key=lambda name: (name != _LOG, name)):
                self.storage.remove(f"{self.folder}/{name}")

    def delete(self, output: str) -> None:
        """Remove the folder."""
        self._demand(output)
        with answering(self.folder):
            self.storage.remove(self.folder)

    @property
    def _system(self) -> str:
        if plain(self.folder).startswith("/"):
            return "file system"
        return "/".join(self.folder.split("/")[:3])

    def _demand(self, output: str) -> None:
        seen = self.facts()
        if seen.existence is Existence.PRESENT and seen.id != output:
            raise RefusedError(f'output "{self.folder}" is not the one any more that was looked at')


class _OwnersOutput:
    """What Spark's writer appends to, and only its owner makes, empties or deletes."""

    def ensure(self) -> None:
        """Do nothing: what is missing is refused before."""

    def newest_batch(self) -> None:
        """Return nothing: Spark remembers no batch there."""

    def empty(self, output: str) -> None:
        """Refuse: the decision offers it for no such output."""
        raise RefusedError(f'output "{output}" is emptied by its owner alone')

    def delete(self, output: str) -> None:
        """Refuse, likewise."""
        raise RefusedError(f'output "{output}" is deleted by its owner alone')


@dataclass(frozen=True)
class JdbcOutput(_OwnersOutput):
    """A table of Postgres that Spark's JDBC writer appends to.

    :param options: of the connection; hold the password.
    """

    options: PostgresOptions
    table: str

    def facts(self, *, with_size: bool = False) -> ResourceFacts:
        """Ask the database which table it is, and whether it may be written."""
        del with_size
        from airflow_provider_sinks.connectors.postgres import observe
        from airflow_provider_sinks.connectors.postgres.client import PostgresClient

        with PostgresClient(self.options).connected() as connection:
            seen = observe.look(connection, {Role.DATA: self.table}, {Role.DATA: ("INSERT",)})
        return replace(seen[Role.DATA], keeps=_kept())

    def columns(self) -> Mapping[str, str]:
        """Return those of the table."""
        from airflow_provider_sinks.connectors.postgres.client import PostgresClient
        from airflow_provider_sinks.connectors.postgres.layout import layout

        with PostgresClient(self.options).connected() as connection:
            found = layout(connection, self.table)
        return {name: column.kind for name, column in found.columns.items()} if found else {}


@dataclass(frozen=True)
class UnseenOutput(_OwnersOutput):
    """What only Spark's writer knows. It counts as there, and as the same."""

    name: str

    def facts(self, *, with_size: bool = False) -> ResourceFacts:
        """Say that it is there."""
        del with_size
        return ResourceFacts(self.name, Existence.PRESENT, "Spark", kind=ResourceKind.TABLE, keeps=_kept())

    def columns(self) -> Mapping[str, str]:
        """Return nothing: what it takes, only its writer knows."""
        return {}


def _told(mark: bytes, sink: str) -> tuple[str, Unfit | None]:
    """Return the id of a folder, and why it cannot be used where it is another sink's."""
    try:
        found = json.loads(mark)
        owner, own = str(found["sink"]), str(found["id"])
    except (ValueError, KeyError, TypeError):
        owner, own = "", ""
    if owner == sink:
        return own, None
    unfit = Unfit(
        f'is the folder of sink "{owner}"' if owner else f"has a {MARK} that cannot be read",
        "Spark's file sink drops what two writers give the same number.",
        "Give this sink a folder of its own.",
    )
    return own, unfit


def _not_empty(name: str) -> Unfit:
    return Unfit(
        f'holds "{name}", which this sink has not written',
        "Readers that go by the log of Spark's file sink would not see it, or another query writes there.",
        "Name a folder that is empty or not there.",
    )


def _kept() -> Unfit:
    return Unfit(
        "is not the sink's to empty",
        "Spark's writer appends, and nothing tells its rows from others'.",
        "Let its owner empty it, and reset with the output kept.",
    )
