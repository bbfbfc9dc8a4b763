"""Whether the connections of a running launch have changed: readings in, what changed out.

A launch holds a fingerprint of the options that its driver got of each connection. Readings come every few
seconds. Changed means that the same new value was read twice: a secret that differs at every read never
changes anything, and a value that could not be read says nothing. Fingerprints are salted anew in each
process and never leave it.

>>> now = Following({"kafka": "a"}, launched_at_seconds=0)
>>> now = now.read({"kafka": "b"}).read({"kafka": "b"})
>>> now.changed(at_seconds=59), now.changed(at_seconds=60)
((), ('kafka',))
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

Fingerprint: TypeAlias = str

LAUNCH_SECONDS = 60.0
"""A sink is launched again for the sake of its connections at most this often."""

_SALT = secrets.token_bytes(32)


def fingerprint(options_json: str) -> Fingerprint:
    """Return the fingerprint of a connection's options; it means nothing outside of this process.

    :param options_json: exactly what a driver would get.
    """
    return hashlib.blake2b(options_json.encode(), key=_SALT, digest_size=16).hexdigest()


@dataclass(frozen=True)
class Following:
    """What is known of the connections of a launch.

    :param launched: by connection id, what the driver got.
    :param launched_at_seconds: when the launch began, on any clock.
    :param newer: the newest value of each connection that differs from what the driver got.
    :param confirmed: the connections of which that value was read twice.
    """

    launched: Mapping[str, Fingerprint]
    launched_at_seconds: float
    newer: Mapping[str, Fingerprint] = field(default_factory=dict)
    confirmed: frozenset[str] = frozenset()

    def read(self, reading: Mapping[str, Fingerprint | None]) -> Following:
        """Return what is known after one more reading.

        :param reading: by connection id; ``None`` where it could not be read.
        """
        readable = {conn_id: value for conn_id, value in reading.items() if value is not None}
        differ = {conn_id: value for conn_id, value in readable.items() if value != self.launched[conn_id]}
        again = {conn_id for conn_id, value in differ.items() if self.newer.get(conn_id) == value}
        unread = set(self.launched) - set(readable)
        kept = {conn_id: value for conn_id, value in self.newer.items() if conn_id in unread}
        return replace(self, newer={**kept, **differ}, confirmed=(self.confirmed & unread) | again)

    def changed(self, at_seconds: float) -> tuple[str, ...]:
        """Return the connections for whose sake the sink must be launched again now, sorted.

        :param at_seconds: the time now, on the clock of ``launched_at_seconds``.
        """
        if at_seconds - self.launched_at_seconds < LAUNCH_SECONDS:
            return ()
        return tuple(sorted(self.confirmed))
