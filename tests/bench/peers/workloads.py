"""What is copied, and how a reader knows it again.

Each row has a number. Its key, its partition and its value follow from the number, and the number stands in
what arrives: so a reader needs no list of what was written to find what is missing, doubled, wrong or out of
order.
"""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Protocol

KEYS = 50_000
"""A multiple of every number of partitions that is measured: the rows of a key are in one partition."""
USERS = 1_000
SCHEMA = "id BIGINT, userid STRING, category INT, price DOUBLE, note STRING"
USERS_TABLE = "public.users"
_SEED = 20261121
_DISTINCT = 10_000
_NUMBER = struct.Struct(">Q")
_NOTE = "a note that nobody reads, but that everybody has to parse"
_BEGINNING = b'{"id":'
_LEFT_OUT = 3
_REGIONS = 16


class Workload(Hashable, Protocol):
    """What one row is, before and after."""

    @property
    def name(self) -> str:
        """For titles."""

    @property
    def record_bytes(self) -> int:
        """The size of a value before, about; for tools that write rows of their own."""

    def value(self, number: int) -> bytes:
        """Return the value of a source row."""

    def arrives(self, number: int) -> bool:
        """Whether the row is in the output."""

    def number(self, value: bytes) -> int:
        """Return the number of an output row, or -1 if it has none."""

    def is_right(self, number: int, value: bytes) -> bool:
        """Whether the output row of a number is what it must be."""


def key(number: int) -> bytes:
    """Return the key of a row, before and after."""
    return b"key-%d" % (number % KEYS)


@cache
def rows_out(workload: Workload, rows: int) -> int:
    """Return how many of the first rows are in the output.

    Counted once: an arm that starts meanwhile would share its processors with the counting.
    """
    return sum(map(workload.arrives, range(rows)))


@dataclass(frozen=True)
class Copy:
    """Key and value as they are.

    :param record_bytes: of a value.
    """

    record_bytes: int

    @property
    def name(self) -> str:
        """See :class:`Workload`."""
        return f"copy, {self.record_bytes:,} B"

    @cached_property
    def _tails(self) -> list[bytes]:
        chance = random.Random(_SEED)  # noqa: S311  not a secret
        return [chance.randbytes(self.record_bytes - _NUMBER.size) for _ in range(_DISTINCT)]

    def value(self, number: int) -> bytes:
        """See :class:`Workload`."""
        return _NUMBER.pack(number) + self._tails[number % _DISTINCT]

    def arrives(self, number: int) -> bool:
        """See :class:`Workload`."""
        del number
        return True

    def number(self, value: bytes) -> int:
        """See :class:`Workload`."""
        return int(_NUMBER.unpack_from(value)[0]) if len(value) == self.record_bytes else -1

    def is_right(self, number: int, value: bytes) -> bool:
        """See :class:`Workload`."""
        return value == self.value(number)


@dataclass(frozen=True)
class Enrich:
    """JSON in, a ``WHERE`` that lets three of four rows through, a lookup join, JSON out."""

    name: str = "JSON, WHERE and lookup, JSON"
    record_bytes: int = 135

    def value(self, number: int) -> bytes:
        """See :class:`Workload`."""
        return (
            f'{{"id":{number},"userid":"{_userid(number % USERS)}","category":{_category(number)},'
            f'"price":{_price(number)},"note":"{_NOTE}"}}'
        ).encode()

    def arrives(self, number: int) -> bool:
        """See :class:`Workload`."""
        return _category(number) != _LEFT_OUT

    def number(self, value: bytes) -> int:
        """See :class:`Workload`."""
        digits = value[len(_BEGINNING) : value.find(b",")]
        return int(digits) if value.startswith(_BEGINNING) and digits.isdigit() else -1

    def is_right(self, number: int, value: bytes) -> bool:
        """See :class:`Workload`. The price counts as a number: some write 3.0, others 3.00."""
        user = number % USERS
        expected = {"id": number, "userid": _userid(user), "region": _region(user), "price": _price(number)}
        return bool(json.loads(value) == expected)

    @staticmethod
    def users() -> list[tuple[str, str]]:
        """Return the rows of the lookup table: user and region."""
        return [(_userid(user), _region(user)) for user in range(USERS)]

    @staticmethod
    def query(source: str, users: str) -> str:
        """Return the query.

        :param source: how the SQL at hand names the view of the source.
        :param users: how it names the lookup in a join.
        """
        return (
            f"SELECT s.id, s.userid, u.region, s.price FROM {source} AS s "  # noqa: S608  names are ours
            f"JOIN {users} AS u ON s.userid = u.userid WHERE s.category <> {_LEFT_OUT}"
        )


def _category(number: int) -> int:
    """Change slower than the partition does: each partition has rows of all categories."""
    return number // 16 % 4


def _price(number: int) -> float:
    return number % 1_000 / 8


def _userid(user: int) -> str:
    return f"user-{user:06d}"


def _region(user: int) -> str:
    return f"region-{user % _REGIONS}"
