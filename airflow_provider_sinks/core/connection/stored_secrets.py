"""A stored secret is sent only to where it was stored for.

Who may alter a connection may not be one who may read it. Were the server changed and the password kept, the
very check of the new options would log in at the new server, and tell it the password. So a change of
anything that decides who hears a secret demands that each secret is given anew in the same change: a person
who has it anyway loses nothing by that, and who has it not learns nothing.

An option counts unless it is known to be harmless: an option that is allowed one day is safe without a word
here. The server and its certificate count, the protocol and the mechanism (PLAIN tells the password, SCRAM
only proves it), the user (a password is one user's at one server), and a database's name (``pg_hba.conf``
chooses by it whether the password is told or proved). Taking an option away is a change too.

Where a connection has no login of its own, a client may take that of the machine: a role of the cloud, a
variable. It is the machine's for the address that the connection's author chose, and goes to no other: not to
a new address, and not to one that stays while its login is taken away.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from airflow_provider_sinks.core.connection.alterable import COLUMNS, AlterableOptions, Service
from airflow_provider_sinks.core.connection.fields import ConnectionFields
from airflow_provider_sinks.core.errors import ConfigurationError, Problem


def kept_secrets(
    old: ConnectionFields, new: ConnectionFields, options: AlterableOptions, given: Collection[str]
) -> dict[str, tuple[str, ...]]:
    """Return the secrets that would be told to somebody new, each with the options that decide it.

    :param options: those of the connection's type.
    :param given: the secrets that the same change sets.
    """
    before, after = _told(old, options), _told(new, options)
    moved = tuple(
        name
        for name in sorted(before.keys() | after.keys())
        if name not in options.harmless | options.secrets and before.get(name) != after.get(name)
    )
    if not moved:
        return {}
    return {name: moved for name in sorted(options.secrets) if name in after and name not in given}


def lent_problems(old: ConnectionFields, new: ConnectionFields, options: AlterableOptions) -> list[Problem]:
    """Return the addresses that would newly be sent the machine's own login.

    An address stands for its login, too: what was led there with a login of its own may be led there by
    somebody else than the connection's author.
    """
    before, after = _told(old, options), _told(new, options)
    return [
        problem
        for service in options.services
        if not _has_login(service, after)
        for name in sorted(service.addresses & after.keys())
        for problem in _lent(name, service, moved=before.get(name) != after[name], before=before)
    ]


def _lent(name: str, service: Service, *, moved: bool, before: Mapping[str, Any]) -> Iterator[Problem]:
    to_it = "be sent what the worker itself logs in with: the connection"
    if moved:
        hint = f"set {_either(service)} in the same change"
        yield Problem(name, f"would lead elsewhere, and {to_it} has no login", hint)
    elif _has_login(service, before):
        hint = f"the address goes with its login: drop it too, or keep or set {_either(service)}"
        yield Problem(name, f"would {to_it} would have no login any more", hint)


def _has_login(service: Service, told: Mapping[str, Any]) -> bool:
    return any(login <= told.keys() for login in service.logins)


def _either(service: Service) -> str:
    return ", or ".join(" and ".join(sorted(login)) for login in service.logins)


def kept_problems(kept: Mapping[str, tuple[str, ...]]) -> list[Problem]:
    """Return what is wrong: one problem for each secret that is to be given anew."""
    return [
        Problem(secret, f"must be given anew: {' and '.join(moved)} would change, and decide who hears it")
        for secret, moved in kept.items()
    ]


def _told(fields: ConnectionFields, options: AlterableOptions) -> Mapping[str, Any]:
    """Return what a connection says, by the first names of its options; as a client gets it, if one does.

    So two ways to write the same are no change: a port left out that is the default, or lower case.
    """
    columns = {name: getattr(fields, name) for name in COLUMNS if name in options.columns}
    told = {options.canonical(name): value for name, value in fields.whole_extra().items()}
    told |= {name: value for name, value in columns.items() if value not in (None, "")}
    try:
        checked = fields.options()
    except ConfigurationError:
        return told
    return told | {options.canonical(name): value for name, value in checked.given.items()}
