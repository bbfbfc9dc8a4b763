"""A Delta table as it was loaded at one version, and the one atomic step that changes it.

A table is a folder of data files and a log of commits. A commit is the file of the next version, which can be
made once: whoever finds it there has lost. delta-rs, as others do, then looks whether it may go on behind the
winner. That is not wanted here: it would let a driver commit that was fenced in between. So it is told to try
once, and the table is loaded and judged again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow_provider_sinks.connectors.delta.options import DeltaOptions
from airflow_provider_sinks.connectors.epoch_writer import InDoubtError
from airflow_provider_sinks.connectors.table_format.errors import HiddenError, MissingError, OvertakenError
from airflow_provider_sinks.core.errors import (
    AuthenticationError,
    ConfigurationError,
    Problem,
    SinkError,
    UnavailableError,
)

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable

LOG = "_delta_log"
_OVERTAKEN = re.compile(r"Failed to commit transaction: \d+\s*$|already exists", re.IGNORECASE)
_FORBIDDEN = re.compile(r"permission denied|access ?denied|forbidden|read-only file system", re.IGNORECASE)
_ANSWERED_FORBIDDEN = re.compile(r"\b403 Forbidden\b|(Errno|os error) (13|30)\b")
_WRONG_KEYS = re.compile(
    r"<Code>(InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken)</Code>|\b401 Unauthorized\b"
)
_NO_ROOM = re.compile(r"(Errno|os error) (28|122)\b")
"""Of a commit only the storage's own answer counts, by its form: an error tells paths too."""


@dataclass(frozen=True)
class DeltaVersion:
    """A table at one version.

    :param name: its path.
    :param raw: as delta-rs has it.
    """

    name: str
    raw: DeltaTable = field(repr=False)

    @cached_property
    def number(self) -> int:
        """The version."""
        return self.raw.version()

    @cached_property
    def id(self) -> str:
        """What the table was given when it was made."""
        return str(self.raw.metadata().id)

    @cached_property
    def fields(self) -> list[dict[str, Any]]:
        """Its columns, as Spark writes a struct as JSON."""
        found: list[dict[str, Any]] = json.loads(self.raw.schema().to_json())["fields"]
        return found

    @cached_property
    def partitioned_by(self) -> tuple[str, ...]:
        """The columns of its partitioning."""
        return tuple(self.raw.metadata().partition_columns)

    @cached_property
    def properties(self) -> Mapping[str, str]:
        """What is set for it."""
        return dict(self.raw.metadata().configuration)

    def transaction(self, app: str) -> int | None:
        """Return the newest version of an application's transactions."""
        return self.raw.transaction_version(app)

    def commits_since(self, version: int) -> list[dict[str, Any]]:
        """Return what each commit behind a version says of itself, as far as the log still has it."""
        count = self.number - version
        found = self.raw.history(count) if count > 0 else []
        return [commit for commit in found if int(commit.get("version", -1)) > version]


def load(options: DeltaOptions, name: str) -> DeltaVersion:
    """Return a table as it is now.

    :raises MissingError: there is none.
    :raises HiddenError: this login may not see it.
    :raises UnavailableError: it could not be read.
    """
    from deltalake import DeltaTable

    with asking(options, name):
        return DeltaVersion(name, DeltaTable(name, storage_options=dict(options.parameters)))


def create(options: DeltaOptions, name: str, schema: str, partition_by: Sequence[str]) -> None:
    """Make a table, unless it is there.

    :param schema: JSON of its columns.
    :raises HiddenError: this login may not.
    """
    from deltalake import DeltaTable, Schema

    with asking(options, name):
        DeltaTable.create(
            name,
            Schema.from_json(schema),
            mode="ignore",
            partition_by=list(partition_by),
            storage_options=dict(options.parameters),
        )


@contextmanager
def asking(options: DeltaOptions, name: str) -> Iterator[None]:
    """Turn what a question about a table raises into words of ours."""
    from deltalake.exceptions import TableNotFoundError

    try:
        yield
    except (SinkError, MissingError, HiddenError, OvertakenError):
        raise
    except (TableNotFoundError, FileNotFoundError) as error:
        raise MissingError(f"there is no Delta table at {name}") from error
    except Exception as error:
        text = told(error)
        if _WRONG_KEYS.search(text):
            raise _of(options, _wrong_keys(name, text)) from error
        if _FORBIDDEN.search(text.replace(name, "").replace(urlsplit(name).path, "")):
            raise HiddenError(text) from error
        raise _of(options, _unavailable(name, text)) from error


def commit(options: DeltaOptions, name: str, act: Callable[[], object]) -> None:
    """Do what commits one change of a table, once.

    :raises OvertakenError: somebody else was first; nothing has changed.
    :raises SinkError: it was refused; nothing has changed.
    :raises InDoubtError: no answer; it may or may not have happened.
    """
    from deltalake.exceptions import CommitFailedError, DeltaProtocolError, TableNotFoundError

    try:
        act()
    except CommitFailedError as error:
        if _OVERTAKEN.search(told(error)):
            raise OvertakenError(told(error)) from error
        raise _failed(options, name, error) from error
    except TableNotFoundError as error:
        raise MissingError(told(error)) from error
    except DeltaProtocolError as error:
        raise _of(options, _may_not(name, told(error))) from error
    except SinkError:
        raise
    except Exception as error:
        raise _failed(options, name, error) from error


def once(state: Mapping[str, str], transactions: Mapping[str, int], now_ms: int) -> CommitProperties:
    """Return how a change is committed: once, on the very version that was loaded.

    :param state: what the commit says of itself, beside what delta-rs writes there.
    :param transactions: versions of applications.
    """
    from deltalake import CommitProperties, Transaction

    found = [Transaction(app, version, now_ms) for app, version in transactions.items()]
    return CommitProperties(custom_metadata=dict(state), max_commit_retries=0, app_transactions=found)


def told(error: BaseException) -> str:
    """Return what an error says, in one line, without colours."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    return " ".join(text.split()) or type(error).__name__


def _failed(options: DeltaOptions, name: str, error: Exception) -> SinkError:
    text = told(error)
    if _WRONG_KEYS.search(text):
        return _of(options, _wrong_keys(name, text))
    if _ANSWERED_FORBIDDEN.search(text):
        return _of(options, _may_not(name, text))
    if _NO_ROOM.search(text):
        hint = "See that the storage has room."
        return _of(options, UnavailableError(f'table "{name}" could not be changed', text, hint))
    return InDoubtError(
        f"a commit to table {name} was not answered",
        f"{type(error).__name__}: {text}",
        "The table's own progress tells: nothing is written twice.",
    )


def _wrong_keys(name: str, text: str) -> SinkError:
    hint = "Correct the keys of the Airflow connection."
    return AuthenticationError(f'the storage of table "{name}" refused the keys', text, hint)


def _may_not(name: str, text: str) -> SinkError:
    hint = "Let the owner of the storage allow it, or see which feature of the table delta-rs does not write."
    return ConfigurationError(f'table "{name}" may not be changed', [Problem(name, text)], hint)


def _unavailable(name: str, text: str) -> SinkError:
    hint = "Check the connection's address and keys, and that its storage can be read from here."
    return UnavailableError(f'table "{name}" could not be asked', text, hint)


def _of(options: DeltaOptions, error: SinkError) -> SinkError:
    return error.of(options.conn_id) if options.conn_id else error
