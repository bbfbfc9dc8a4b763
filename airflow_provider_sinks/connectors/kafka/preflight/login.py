"""Says to a broker who we are, by PLAIN or SCRAM, and sees which word of the conversation ended it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import struct

from airflow_provider_sinks.clients.reach import StoppedError
from airflow_provider_sinks.connectors.kafka.wire import (
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    WireConnection,
    text,
)
from airflow_provider_sinks.core.checks.network import Stop

NO_SUCH_MECHANISM = 33


def authenticate(wire: WireConnection, mechanism: str, user: str, password: str) -> None:
    """Say who we are.

    :param mechanism: PLAIN, or one of SCRAM's.
    :raises StoppedError: the broker does not offer the mechanism, or does not believe us.
    """
    answer = wire.ask(SASL_HANDSHAKE, 1, text(mechanism))
    if answer.number("h") == NO_SUCH_MECHANISM:
        known = {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "OAUTHBEARER"}
        offered = sorted(known & {answer.text() for _ in answer.repeats()})
        raise StoppedError(
            Stop.MECHANISM, f"{mechanism} is not offered; offered: {', '.join(offered) or 'none'}"
        )
    if mechanism == "PLAIN":
        _tell(wire, b"\0" + user.encode() + b"\0" + password.encode())
    else:
        digest = mechanism.removeprefix("SCRAM-").replace("-", "").lower()
        _scram(wire, digest, user, password)


def _tell(wire: WireConnection, what: bytes) -> bytes:
    """Send one word of the conversation and return the other side's."""
    body = struct.pack(">i", len(what)) + what
    answer = wire.ask(SASL_AUTHENTICATE, 0, body, closed=Stop.CREDENTIALS)
    code = answer.number("h")
    answer.text()
    if code != 0:
        raise StoppedError(Stop.CREDENTIALS, "the broker refused the credentials")
    return answer.blob()


def _scram(wire: WireConnection, digest: str, user: str, password: str) -> None:
    """Prove that we know the password, and see that the broker knows it too (RFC 5802)."""
    name = user.replace("=", "=3D").replace(",", "=2C")
    nonce = secrets.token_urlsafe(24)
    first = f"n={name},r={nonce}"
    challenge = _tell(wire, f"n,,{first}".encode()).decode("utf-8", "replace")
    asked = dict(part.split("=", 1) for part in challenge.split(",") if "=" in part)
    try:
        rounds, salt, both = int(asked["i"]), base64.b64decode(asked["s"]), asked["r"]
    except (KeyError, ValueError):
        raise StoppedError(Stop.OTHER_PROTOCOL, "what answers does not speak SCRAM") from None
    if not both.startswith(nonce) or not 1 <= rounds <= 1_000_000:
        raise StoppedError(Stop.NOT_THE_SERVER, "the broker did not answer what it was asked")
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), salt, rounds)
    final = f"c=biws,r={both}"
    said = f"{first},{challenge},{final}".encode()
    key = hmac.digest(salted, b"Client Key", digest)
    signature = hmac.digest(hashlib.new(digest, key).digest(), said, digest)
    proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
    last = _tell(wire, f"{final},p={base64.b64encode(proof).decode()}".encode())
    theirs = hmac.digest(hmac.digest(salted, b"Server Key", digest), said, digest)
    if not hmac.compare_digest(last, b"v=" + base64.b64encode(theirs)):
        raise StoppedError(Stop.NOT_THE_SERVER, "the broker could not prove that it knows the password")
