"""The listeners of a broker that not everybody may use, and the broker properties that make them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


class Mechanism(StrEnum):
    """How users prove who they are."""

    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"


@dataclass(frozen=True)
class Sasl:
    """A listener that demands a user.

    :param mechanism: how users prove who they are.
    :param users: password by user name.
    """

    mechanism: Mechanism
    users: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True)
class Tls:
    """A listener inside TLS.

    :param certificate: of the server, and those that signed it, as PEM.
    :param key: of the certificate, as PEM in PKCS #8 without a password.
    """

    certificate: str
    key: str = field(repr=False)


def tls_properties(key_store: Path) -> dict[str, str]:
    """Return the properties of the listener inside TLS.

    :param key_store: a file with key and certificate as PEM.
    """
    prefix = "listener.name.encrypted.ssl"
    return {f"{prefix}.keystore.type": "PEM", f"{prefix}.keystore.location": str(key_store)}


def sasl_properties(sasl: Sasl) -> dict[str, str]:
    """Return the properties of the listeners that demand a user."""
    module = "plain.PlainLoginModule" if sasl.mechanism is Mechanism.PLAIN else "scram.ScramLoginModule"
    known = "".join(f" user_{user}={_quoted(password)}" for user, password in sasl.users.items())
    options = known if sasl.mechanism is Mechanism.PLAIN else ""
    jaas = f"org.apache.kafka.common.security.{module} required{options};"
    names = [f"listener.name.{listener}.{sasl.mechanism.lower()}" for listener in ("secured", "encrypted")]
    return {
        "sasl.enabled.mechanisms": sasl.mechanism,
        **{f"{name}.sasl.jaas.config": jaas for name in names},
    }


def _quoted(text: str) -> str:
    """Quote a value for a JAAS file."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
