"""The progress record: what a writer knows to be committed, written in the same transaction as its rows.

A record is the last message of its data transaction. Its key is JSON ``[sink, writer]``, so that a compacted
topic keeps the newest record of each writer; its value is JSON with everything a stranger needs to audit the
sink. Only this module knows the two formats. Executors import it too: standard library only.

>>> ProgressKey("orders", partition_writer(3)).encode()
b'["orders","p3"]'

What ``to`` promises depends on who wrote the record:

* ``p<n>`` (one writer per source partition): partition *n* is committed up to ``to[n]``. For every other
  partition only ``from`` is certain, because an epoch starts only when the one before is whole.
* ``all`` (the single writer): every partition is committed up to ``to``.
* ``driver``: it writes only what is whole: the start offsets when it announces a run (``from == to``), and
  the range of an epoch in which no writer had a row.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeAlias

from airflow_provider_sinks.core.progress.identity import Identities

FORMAT = 1
"""The newest format of the value that this code writes and reads."""

WriterId: TypeAlias = str
DRIVER: WriterId = "driver"
SINGLE_WRITER: WriterId = "all"


def partition_writer(partition: int) -> WriterId:
    """Return the id of the writer of one source partition."""
    return f"p{partition}"


def utc_now() -> str:
    """Return the time as records and status documents carry it, such as ``2026-11-20T22:14:05Z``."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Format(enum.Enum):
    """Why a value under our own key cannot be taken."""

    NEWER = "newer"
    GARBAGE = "garbage"


class ProgressFormatError(ValueError):
    """A value under our own key is not a progress record that this code can read."""

    def __init__(self, why: Format, what: str) -> None:
        super().__init__(what)
        self.why = why


@dataclass(frozen=True)
class ProgressKey:
    """The key of a record; ``decode`` answers None for keys that are not ours to judge."""

    sink: str
    writer: WriterId

    def encode(self) -> bytes:
        """Return the key as it stands in the topic."""
        return json.dumps([self.sink, self.writer], separators=(",", ":")).encode()

    @classmethod
    def decode(cls, key: bytes | None) -> ProgressKey | None:
        """Read a key; None if it is not one of ours."""
        try:
            parts = json.loads(key or b"null")
        except (ValueError, RecursionError):
            return None
        if isinstance(parts, list) and len(parts) == 2 and all(isinstance(part, str) for part in parts):
            return cls(*parts)
        return None


@dataclass(frozen=True)
class ProgressRecord:
    """What one writer committed together with its rows.

    :param generation: how often the sink was reset on purpose, from 1.
    :param owner: the Airflow that the sink belongs to.
    :param run: the uuid of this start of the driver.
    :param epoch: counts over the whole sink and over checkpoints, from 1; 0 means that no epoch began yet.
    :param from_: the first offset of the epoch, for all source partitions.
    :param to: the offset after the epoch, for all source partitions; the module says who promises what.
    :param checkpoint: Spark's checkpoint folder.
    :param batch: Spark's batch id in that checkpoint, or -1 when no batch stands behind the record.
    :param rows: rows of this writer in this epoch.
    :param rows_total: rows of this writer in this generation; 0 for the driver.
    :param dead_total: dead letters of this writer in this generation; 0 for the driver.
    :param at: when, in UTC.
    :param writers: driver only: every writer id ever used and those about to be used.
    :param writer_mode: driver only: ``per_partition`` or ``single``.
    :param spec: driver only: the whole spec as JSON text.
    :param ids: driver only: every transactional id ever used and those about to be, whole, whatever prefix
        they were made with. Records of a release that did not write them have the prefix in ``spec``.
    :param totals: rows and dead letters of each writer in this generation when this was written, so that a
        reader who starts at this record knows them although it never saw the writers' own records. One of
        several writers names those that its run has changed before the epoch, so that a target cannot forget
        what one of them committed and take more of another's. A single writer names none.
    :param rows_before: driver only: rows that earlier generations left in the data topic; they count when it
        is missing, although a reset starts to count anew.
    :param dead_before: driver only: the same for the dead-letter topic.
    :param leader_epochs: by source partition, the newest leader epoch of its log, seen when it reached ``to``
        (:class:`.log_place.LogPlace`). A partition of which that is not known is left out, and records of a
        release that did not write them have none.
    """

    generation: int
    owner: str
    run: str
    epoch: int
    from_: Mapping[int, int]
    to: Mapping[int, int]
    identities: Identities
    checkpoint: str = ""
    batch: int = -1
    rows: int = 0
    rows_total: int = 0
    dead_total: int = 0
    spec_digest: str = ""
    at: str = field(default_factory=utc_now)
    writers: tuple[WriterId, ...] = ()
    writer_mode: str = ""
    spec: str = ""
    ids: tuple[str, ...] = ()
    totals: Mapping[WriterId, tuple[int, int]] = field(default_factory=dict)
    rows_before: int = 0
    dead_before: int = 0
    leader_epochs: Mapping[int, int] = field(default_factory=dict)

    def encode(self) -> bytes:
        """Return the value as it stands in the topic, without the fields that not every writer fills."""
        data = {"v": FORMAT} | {_json_name(name): getattr(self, name) for name in _READERS}
        data["identities"] = self.identities.to_mapping()
        for name in _OPTIONAL:
            if not data[name]:
                del data[name]
        return json.dumps(data, separators=(",", ":"), sort_keys=True).encode()

    @classmethod
    def decode(cls, value: bytes) -> ProgressRecord:
        """Read a record.

        Fields that this format does not know are ignored, so that a later release may add some.

        :raises ProgressFormatError: it is of a newer format, or no progress record at all.
        """
        data = _json_object(value)
        _check_format(data.get("v"))
        try:
            given = [name for name in _READERS if name not in _OPTIONAL or name in data]
            return cls(**{name: _READERS[name](data[_json_name(name)]) for name in given})
        except KeyError as error:
            raise ProgressFormatError(Format.GARBAGE, f"{error.args[0]!r} is missing") from None
        except (TypeError, ValueError, AttributeError) as error:
            raise ProgressFormatError(Format.GARBAGE, str(error)) from None

    def with_set_aside(self, rows: int) -> ProgressRecord:
        """Return it as it is where so many of its rows turned out, late, to be dead letters."""
        return replace(
            self,
            rows=self.rows - rows,
            rows_total=self.rows_total - rows,
            dead_total=self.dead_total + rows,
        )

    def committed(self, writer: WriterId, partition: int) -> int | None:
        """Return up to where this record proves ``partition`` committed, or None if it says nothing.

        :param writer: who wrote the record.
        """
        whole = writer in (DRIVER, SINGLE_WRITER, partition_writer(partition))
        return (self.to if whole else self.from_).get(partition)


def _json_name(name: str) -> str:
    return name.rstrip("_")


def _json_object(value: bytes) -> dict[str, Any]:
    try:
        data = json.loads(value)
    except (ValueError, RecursionError):
        raise ProgressFormatError(Format.GARBAGE, f"not JSON: {_excerpt(value)}") from None
    if not isinstance(data, dict):
        raise ProgressFormatError(Format.GARBAGE, f"not a JSON object: {_excerpt(value)}")
    return data


def _check_format(v: object) -> None:
    if not isinstance(v, int) or isinstance(v, bool):
        raise ProgressFormatError(Format.GARBAGE, f"format {v!r} is not a number")
    if v < 1:
        raise ProgressFormatError(Format.GARBAGE, f"format {v} was never written")
    if v > FORMAT:
        raise ProgressFormatError(Format.NEWER, f"format {v}, this release reads up to {FORMAT}")


def _excerpt(value: bytes) -> str:
    return repr(value[:40]) + ("..." if len(value) > 40 else "")


def _int(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is not a number")
    return value


def _str(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def _offsets(value: Mapping[str, object]) -> dict[int, int]:
    return {int(partition): _int(offset) for partition, offset in value.items()}


def _totals(value: Mapping[str, list[object]]) -> dict[WriterId, tuple[int, int]]:
    return {writer: (_int(rows), _int(dead)) for writer, (rows, dead) in value.items()}


def _writers(value: list[object]) -> tuple[WriterId, ...]:
    return tuple(_str(writer) for writer in value)


_OPTIONAL = (
    "writers", "writer_mode", "spec", "ids", "totals", "rows_before", "dead_before", "leader_epochs",
)  # fmt: skip

_READERS: Mapping[str, Callable[[Any], Any]] = {
    "generation": _int,
    "owner": _str,
    "run": _str,
    "epoch": _int,
    "from_": _offsets,
    "to": _offsets,
    "identities": Identities.from_mapping,
    "checkpoint": _str,
    "batch": _int,
    "rows": _int,
    "rows_total": _int,
    "dead_total": _int,
    "spec_digest": _str,
    "at": _str,
    "writers": _writers,
    "writer_mode": _str,
    "spec": _str,
    "ids": _writers,
    "totals": _totals,
    "rows_before": _int,
    "dead_before": _int,
    "leader_epochs": _offsets,
}
