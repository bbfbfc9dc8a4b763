"""Further addresses of a catalog, of tokens and of storage: none may lead to the machine's own secrets."""

from __future__ import annotations

import pytest

from airflow_provider_sinks.connectors.iceberg.connection_type import ICEBERG
from airflow_provider_sinks.connectors.iceberg.options import IcebergOptions
from airflow_provider_sinks.connectors.preflight import validate
from airflow_provider_sinks.core.checks.check import Check, Outcome
from airflow_provider_sinks.core.connection.fields import ConnectionFields
from tests.listening_broker import listening_service

METADATA = "169.254.169.254"
FURTHER = [
    ("oauth2-server-uri", "http://{}/token"),
    ("oauth2-server-uri", "http://{}:8080/token"),
    ("s3.endpoint", "http://{}"),
    ("s3.endpoint", "{}:9000"),
    ("adls.account-host", "{}"),
    ("gcs.service.host", "https://{}/storage"),
    ("warehouse", "hdfs://{}:9000/tables"),
    ("warehouse", "abfss://container@{}/tables"),
]


def catalog(host: str, **extra: str) -> ConnectionFields:
    """Return a connection of a REST catalog."""
    return ConnectionFields("lake", "iceberg", host, extra={"catalog": "rest", **extra})


def judged(fields: ConnectionFields) -> dict[str, Check]:
    """Return the checks of a connection, by name."""
    return {check.name: check for check in validate({"lake": fields}, seconds=5).checks}


@pytest.mark.parametrize(("option", "written"), FURTHER)
@pytest.mark.parametrize("address", [METADATA, "[fd00:ec2::254]", "2852039166", "100.100.100.200"])
def test_a_further_address_does_not_lead_to_a_metadata_service(
    option: str, written: str, address: str
) -> None:
    with listening_service() as service:
        found = judged(catalog(f"http://{service.address}", **{option: written.format(address)}))

        assert not service.visits

    assert found["further addresses"].outcome is Outcome.FAIL
    assert option in found["further addresses"].detail
    assert "is refused" in found["further addresses"].detail
    assert not found["further addresses"].retryable


def test_a_further_address_with_a_known_name_passes() -> None:
    with listening_service() as service:
        found = judged(catalog(f"http://{service.address}", **{"s3.endpoint": "http://127.0.0.1:9000"}))

    assert found["further addresses"].outcome is Outcome.PASS
    assert found["TCP"].outcome is Outcome.PASS


def test_a_name_that_is_not_known_here_may_be_known_to_the_driver() -> None:
    with listening_service() as service:
        found = judged(catalog(f"http://{service.address}", **{"s3.endpoint": "http://minio.invalid:9000"}))

    assert found["further addresses"].outcome is Outcome.UNKNOWN
    assert found["TCP"].outcome is Outcome.PASS


def test_a_bucket_is_no_server() -> None:
    found = ICEBERG.read(catalog("http://c", warehouse="s3://bucket/tables"))

    assert isinstance(found, IcebergOptions)
    assert found.further_servers == {}


def test_the_name_of_an_account_leads_to_its_server() -> None:
    found = ICEBERG.read(catalog("http://c", **{"adls.account-name": "lake"}))

    assert isinstance(found, IcebergOptions)
    assert found.further_servers == {"adls.account-name": ("lake.dfs.core.windows.net", 443)}
