"""Whether the connections of a running launch have changed: readings in, what changed out. The one rule.

A launch holds a fingerprint of the options that its driver got of each connection. Readings come every few
seconds. Changed means that the same new value was read twice: a secret that differs at every read never
changes anything, and a value that could not be read says nothing. Fingerprints are salted anew in each
process and never leave it.

Who did not see what the driver got (a triggerer, a later try of the task) knows of it only what is no secret:
:func:`unlike` compares that.

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

from airflow_provider_sinks.core.connection.options import ConnectionOptions
from airflow_provider_sinks.core.connection.resolved import ResolvedConnections

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
class Reading:
    """What was read of a connection.

    :param fingerprint: of everything; means something in this process alone.
    :param visible: tells options apart as far as they are no secret; means the same everywhere.
    """

    fingerprint: Fingerprint
    visible: str

    @classmethod
    def of(cls, conn_id: str, options: ConnectionOptions) -> Reading:
        """Return what tells these options of a connection from others."""
        found = ResolvedConnections({conn_id: options})
        return cls(fingerprint(found.to_json()), found.visible_digests()[conn_id])


def unlike(got: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """Return the connections that do not look like what a driver got of them; unknown ones look like it.

    :param got: by connection id, what tells its options apart as far as they are no secret.
    :param now: the same, as it is read now.
    """
    return tuple(conn_id for conn_id, digest in now.items() if got.get(conn_id, digest) != digest)


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

    @classmethod
    def of(cls, connections: ResolvedConnections, launched_at_seconds: float) -> Following:
        """Return what is known when a driver has just got these connections."""
        got = connections.options.items()
        return cls(
            {conn_id: Reading.of(conn_id, one).fingerprint for conn_id, one in got}, launched_at_seconds
        )

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
