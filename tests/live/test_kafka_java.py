"""The options for Spark's Kafka source, read by Kafka's own Java classes; and the hash of keys by them."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from py4j.java_gateway import (  # type: ignore[import-untyped]
    GatewayParameters,
    JavaGateway,
    launch_gateway,
)

from airflow_provider_sinks.connectors.kafka.murmur2 import murmur2, murmur2_of, partitions_of
from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.core.errors import ConfigurationError
from airflow_provider_sinks.local import spark

PASSWORDS = {
    "plain": "secret",
    "quotes": "a\"b'c",
    "backslashes": "a\\b\\\\c\\101\\n",
    "looks-like-jaas": 'x"; com.sun.security.auth.module.JndiLoginModule required y="',
    "comments": "a//b/*c*/#d",
    "spaces-and-signs": " =; ,{}$ ",
    "line-ends": "a\nb\r\nc\td",
    "not-ascii": "pässwörd-密码",
    "control": "a\x01b",
}


@pytest.fixture(scope="module")
def java(spark_jars: tuple[Path, ...]) -> Iterator[Any]:
    """A JVM with Kafka's client, without Spark."""
    jars = spark.spark_home() / "jars"
    port, token = launch_gateway(
        jarpath=str(next(jars.glob("py4j-*.jar"))),
        classpath=os.pathsep.join([*map(str, spark_jars), str(jars / "*")]),
        die_on_exit=True,
        enable_auth=True,
        return_proc=False,
    )
    gateway = JavaGateway(
        gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True)
    )
    yield gateway.jvm
    gateway.shutdown()


def consumer_values(java: Any, options: KafkaOptions) -> Any:
    """Return what a Java consumer makes of the options: checked and with their types."""
    given = {name.removeprefix("kafka."): value for name, value in options.spark_source().items()}
    text = "org.apache.kafka.common.serialization.StringDeserializer"
    given |= {"key.deserializer": text, "value.deserializer": text}
    return java.org.apache.kafka.clients.consumer.ConsumerConfig(java.java.util.HashMap(given)).values()


def test_keys_are_hashed_and_placed_as_by_javas_producer(java: Any) -> None:
    chance = np.random.default_rng(20)
    keys = [chance.bytes(size) for size in range(530) for _ in range(4)] + [b"", b"21", bytes(5_000)]
    hashed = java.org.apache.kafka.common.utils.Utils
    placed = java.org.apache.kafka.clients.producer.internals.BuiltInPartitioner

    theirs = [(hashed.murmur2(key) & 0xFFFFFFFF, placed.partitionForKey(key, 7)) for key in keys]

    ours = murmur2(pa.array([b"cut", *keys], pa.binary()).slice(1))
    assert list(zip(ours.tolist(), partitions_of(ours, 7).tolist(), strict=True)) == theirs
    assert [murmur2_of(key) for key in keys] == ours.tolist()


@pytest.mark.parametrize("password", [pytest.param(text, id=name) for name, text in PASSWORDS.items()])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_java_reads_user_and_password_as_they_are(java: Any, mechanism: str, password: str) -> None:
    sasl = {"security.protocol": "sasl_plaintext", "sasl.mechanism": mechanism}
    extra = {"bootstrap.servers": "b:1", **sasl, "sasl.username": f"u {password}", "sasl.password": password}
    values = consumer_values(java, KafkaOptions.from_connection_extra(extra, "k"))

    context = java.org.apache.kafka.common.security.JaasContext.loadClientContext(values)
    entries = context.configurationEntries()

    assert entries.size() == 1
    assert dict(entries.get(0).getOptions()) == {"username": f"u {password}", "password": password}


def test_java_takes_ca_certificate_and_key(java: Any, tmp_path: Path) -> None:
    values = consumer_values(java, KafkaOptions.from_connection_extra(identity(tmp_path), "k"))

    engines = java.org.apache.kafka.common.security.ssl.DefaultSslEngineFactory()
    engines.configure(values)

    assert engines.keystore().size() == 1
    assert engines.truststore().size() == 1


def test_a_key_that_java_17_cannot_decrypt_is_refused(tmp_path: Path) -> None:
    options = KafkaOptions.from_connection_extra(identity(tmp_path, "key password"), "k")

    with pytest.raises(ConfigurationError) as error:
        options.spark_source()

    assert "is encrypted in a way (PBES2) that Java cannot read before Java 19" in str(error.value)


def identity(folder: Path, key_password: str | None = None) -> dict[str, str]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "client")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + dt.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    hidden: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if key_password is not None:
        hidden = serialization.BestAvailableEncryption(key_password.encode())
    pem = serialization.Encoding.PEM
    (folder / "cert.pem").write_bytes(certificate.public_bytes(pem))
    (folder / "key.pem").write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, hidden))
    return {
        "bootstrap.servers": "b:1",
        "security.protocol": "ssl",
        "ssl.ca.location": f"{folder}/cert.pem",
        "ssl.certificate.location": f"{folder}/cert.pem",
        "ssl.key.location": f"{folder}/key.pem",
        **({"ssl.key.password": key_password} if key_password else {}),
    }
