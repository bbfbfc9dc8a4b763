"""Says in the Java client's words what a connection says in librdkafka's, for Spark's Kafka source.

The two differ in more than names: SASL user and password become a JAAS entry, PEM files become text in
options, upper case matters, and ``none`` is the empty text. Java reads private keys in PKCS #8 only.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping

from airflow_provider_sinks.connectors.kafka.option_names import ALLOWED, NONE, SAME
from airflow_provider_sinks.core.errors import ConfigurationError, Problem

LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}

PBES2 = bytes.fromhex("2a864886f70d01050d")
"""The object identifier of the encryption that OpenSSL uses unless told otherwise."""


def java_options(options: Mapping[str, str], conn_id: str) -> dict[str, str]:
    """Return Java's names and values.

    :param options: checked options with librdkafka's names, PEM as text.
    :raises ConfigurationError: the private key is in a form that Java does not read.
    """
    java = {
        name if ALLOWED[name] == SAME else ALLOWED[name]: value
        for name, value in options.items()
        if ALLOWED[name] != NONE
    }
    if "security.protocol" in java:
        java["security.protocol"] = java["security.protocol"].upper()
    if "sasl.mechanism" in options:
        java["sasl.jaas.config"] = jaas(
            options["sasl.mechanism"], options["sasl.username"], options["sasl.password"]
        )
    return {**java, **_trust(options), **_identity(options, conn_id)}


def jaas(mechanism: str, username: str, password: str) -> str:
    """Write the JAAS entry that carries a user and a password."""
    return f"{LOGIN_MODULES[mechanism]} required username={_quoted(username)} password={_quoted(password)};"


def _quoted(text: str) -> str:
    """Quote for Java's ``StreamTokenizer``, which ends a text at a line's end and knows C's escapes."""
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"}
    return '"' + "".join(escapes.get(character, character) for character in text) + '"'


def _trust(options: Mapping[str, str]) -> dict[str, str]:
    java = {}
    if "ssl.ca.pem" in options:
        java = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": options["ssl.ca.pem"]}
    algorithm = options.get("ssl.endpoint.identification.algorithm")
    if algorithm is not None:
        java["ssl.endpoint.identification.algorithm"] = "" if algorithm == "none" else algorithm
    return java


def _identity(options: Mapping[str, str], conn_id: str) -> dict[str, str]:
    if "ssl.keystore.location" in options:
        java = {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": options["ssl.keystore.location"]}
        if "ssl.keystore.password" in options:
            java["ssl.keystore.password"] = options["ssl.keystore.password"]
        return java
    if "ssl.key.pem" not in options:
        return {}
    java = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": options["ssl.certificate.pem"],
        "ssl.keystore.key": _pkcs8(options["ssl.key.pem"], conn_id),
    }
    if "ssl.key.password" in options:
        java["ssl.key.password"] = options["ssl.key.password"]
    return java


def _pkcs8(pem: str, conn_id: str) -> str:
    problem = _unreadable(pem)
    if problem is not None:
        primary = f'connection "{conn_id}" has a private key that Spark cannot read'
        raise ConfigurationError(primary, [Problem("ssl.key.location", *problem)])
    return pem


def _unreadable(pem: str) -> tuple[str, str] | None:
    keys = dict(re.findall(r"-----BEGIN ([A-Z0-9 ]+)-----([^-]*)-----END", pem))
    if not {"PRIVATE KEY", "ENCRYPTED PRIVATE KEY"} & set(keys):
        what = f"holds {', '.join(keys) or 'no key'}, but Java reads keys in PKCS #8 only"
        return what, "openssl pkcs8 -topk8 -nocrypt -in old.pem -out new.pem"
    if PBES2 in _bytes(keys.get("ENCRYPTED PRIVATE KEY", "")):
        what = "is encrypted in a way (PBES2) that Java cannot read before Java 19"
        return what, "openssl pkcs8 -topk8 -v1 PBE-SHA1-3DES, or -nocrypt, -in old.pem -out new.pem"
    return None


def _bytes(base64_text: str) -> bytes:
    try:
        return base64.b64decode("".join(base64_text.split()))
    except ValueError:
        return b""
