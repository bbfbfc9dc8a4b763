"""Where the options of a ``kafka`` connection stand: in its extra, and what is secret in its password field.

Airflow masks the password field everywhere, and an extra only by the names of its keys. So the field comes
first: it is ``sasl.password``, or ``ssl.key.pem`` if a private key stands there. The login field is
``sasl.username`` where the extra, which other users of the connection read, does not say it.

>>> whole({"sasl.mechanism": "PLAIN"}, "me", "secret")
{'sasl.mechanism': 'PLAIN', 'sasl.username': 'me', 'sasl.password': 'secret'}
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_sinks.core.errors import Problem

KEY, PASSWORD, USERNAME = "ssl.key.pem", "sasl.password", "sasl.username"


@dataclass(frozen=True)
class Fields:
    """The fields of a connection that hold options.

    :param extra: as it is stored, with its second names.
    """

    extra: Mapping[str, Any] = field(repr=False)
    login: str | None
    password: str | None = field(repr=False)


def whole(extra: Mapping[str, Any], login: str | None, password: str | None) -> dict[str, Any]:
    """Return all options of a connection, as if all of them stood in its extra."""
    options = dict(extra)
    if login and USERNAME not in options:
        options[USERNAME] = login
    if password:
        options[_named(password)] = password
    return options


def unused(extra: Mapping[str, Any], login: str | None, password: str | None) -> tuple[str, ...]:
    """Return what is stored twice and not read: a sink would not use it."""
    twice = [_named(password)] if password and _named(password) in extra else []
    return tuple([*twice, "login"] if login and USERNAME in extra else twice)


def placed(options: Mapping[str, Any], before: Fields) -> Fields:
    """Put options where they belong: each where it stood, and a new secret into the password field.

    :param options: all of them, as :func:`whole` gives them.
    :param before: how they were stored.
    """
    extra, login, password = dict(options), None, None
    if before.login and USERNAME in extra:
        login = before.login if USERNAME in before.extra else extra.pop(USERNAME)
    held = _named(before.password) if before.password else None
    for name in (KEY, PASSWORD):  # a key goes first: the name of a password is masked in the extra too
        if name in extra and password is None and (held == name or name not in before.extra):
            password = str(extra.pop(name))
            if name in before.extra:  # somebody else reads it there
                extra[name] = before.extra[name] if password == before.password else password
    return Fields(extra, login, password)


def shown_key(extra: Mapping[str, Any], masked_words: Collection[str] = ()) -> Problem | None:
    """Return what is wrong with a private key in an extra that Airflow shows.

    :param masked_words: Airflow masks what has one of them in its name.
    """
    if KEY not in extra or any(word in KEY.replace(".", "_") for word in masked_words):
        return None
    return Problem(
        KEY,
        "stands in the extra, where Airflow shows it in clear to whoever may read connections",
        "put the key into the password field, which is masked; or name a file, ssl.key.location; or have "
        "Airflow mask it: [core] sensitive_var_conn_names = ssl_key_pem",
    )


def _named(password: str) -> str:
    return KEY if password.lstrip().startswith("-----BEGIN ") else PASSWORD
