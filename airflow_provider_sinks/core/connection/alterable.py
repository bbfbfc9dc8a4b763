"""Which options of a connection may be altered: their names, and which of them are secret."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

COLUMNS = ("host", "port", "login", "password", "schema")
"""The fields of a connection beside its extra."""

_NEVER_PLACES = frozenset({"port", "login", "schema"})
"""Fields that alone lead to no other machine."""

_OTHERS = "other users of the connection read it, and no sink does; change it in Airflow's UI"
_IDENTITY = "it says what the connection is; make a new connection instead"
_IDENTITY_NAMES = ("conn_id", "conn_type", "connection_id", "description", "extra", "team_name")


@dataclass(frozen=True)
class Service:
    """What a client may log in to as the machine that it runs on, where a connection has no login for it.

    :param addresses: the options that lead to it.
    :param logins: each a login, of options that only count together.
    """

    addresses: frozenset[str]
    logins: tuple[frozenset[str], ...]


@dataclass(frozen=True)
class AlterableOptions:
    """The options of one type of connection.

    :param columns: those that are fields of their own; the others stand in the extra.
    :param in_extra: those that stand in the extra.
    :param aliases: second names.
    :param secrets: those whose values are never written down.
    :param harmless: those that decide nothing about who hears a secret.
    :param files: those that name files of the worker.
    :param others: those in the extra that only other users of the connection read.
    :param refused: says why no sink takes an option; an empty text for one that nobody knows.
    :param addresses: those that lead to a server; ``None`` for all that decide who hears a secret.
    :param services: to which a client may log in as its machine.
    :param serves_others: connections of this type are there for others than sinks too: only one that a sink
        names is altered.
    """

    columns: frozenset[str]
    in_extra: frozenset[str]
    aliases: Mapping[str, str]
    secrets: frozenset[str]
    harmless: frozenset[str]
    files: frozenset[str]
    others: frozenset[str]
    refused: Callable[[str], str]
    addresses: frozenset[str] | None = None
    services: tuple[Service, ...] = ()
    serves_others: bool = False

    @property
    def deciding(self) -> frozenset[str]:
        """Those that are no secret, and decide who hears one: all that are not known to be harmless."""
        return (self.columns | self.in_extra) - self.secrets - self.harmless

    @property
    def address_names(self) -> frozenset[str]:
        """All names of the options that lead somewhere."""
        return self._all_names(self.deciding - _NEVER_PLACES if self.addresses is None else self.addresses)

    @property
    def secret_names(self) -> frozenset[str]:
        """All names of the options that are secret."""
        return self._all_names(self.secrets)

    @property
    def names(self) -> tuple[str, ...]:
        """All names that may be written, sorted."""
        return tuple(sorted(self.columns | self.in_extra | self.aliases.keys()))

    def _all_names(self, names: frozenset[str]) -> frozenset[str]:
        return names | {other for other, name in self.aliases.items() if name in names}

    def canonical(self, name: str) -> str:
        """Return the first name of an option."""
        return self.aliases.get(name, name)

    def is_alterable(self, name: str) -> bool:
        """Return whether the option of this first name may be altered."""
        return name in self.columns or name in self.in_extra

    def refusal(self, name: str) -> str:
        """Return why an option may not be altered; an empty text for one that nobody knows."""
        if name in _IDENTITY_NAMES:
            return _IDENTITY
        return _OTHERS if name in self.others else self.refused(name)
