"""A connection to the storage of Delta tables: what it may say, and where its secrets may go."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_sinks.connectors.delta.connection_type import DELTA
from airflow_provider_sinks.connectors.delta.options import DeltaOptions
from airflow_provider_sinks.connectors.preflight import validate
from airflow_provider_sinks.core.alter.changes import SetOption
from airflow_provider_sinks.core.alter.fold import alter
from airflow_provider_sinks.core.checks.check import Outcome
from airflow_provider_sinks.core.connection.fields import ConnectionFields
from airflow_provider_sinks.core.errors import ConfigurationError

KEYS = {"aws_access_key_id": "AK", "aws_secret_access_key": "sesame", "aws_region": "eu-1"}


def storage(**extra: Any) -> ConnectionFields:
    return ConnectionFields("store", "delta", extra={**KEYS, **extra})


@pytest.mark.parametrize(
    ("extra", "told"),
    [
        (
            {"aws_acces_key_id": "x"},
            'extra.aws_acces_key_id: is not known (did you mean "aws_access_key_id"?)',
        ),
        ({"AWS_S3_ALLOW_UNSAFE_RENAME": "true"}, "is refused: two commits could take one version of the log"),
        ({"conditional_put": "disabled"}, "is refused: without it two commits could take one version"),
        ({"google_application_credentials": "/k.json"}, "is refused: it names a file of one machine"),
        ({"aws_endpoint": "minio:9000"}, "extra.aws_endpoint: is no address (https://server:port)"),
        ({"aws_endpoint": "http://minio:9000"}, "is not encrypted (https://, or aws_allow_http: true)"),
        ({"aws_endpoint": "https://me:sesame@minio"}, "holds a login or a query"),
        ({"azure_storage_account_name": "a.evil.com/"}, "is no name of an account"),
        (
            {"aws_region": "x@127.0.0.1:80/"},
            "extra.aws_region: is no name of a region (letters, digits and -)",
        ),
        ({"azure_endpoint": "http://store"}, "extra.azure_endpoint: is not encrypted (https://)"),
        ({"google_service_account_key": "sesame"}, "google_service_account_key: is no JSON object"),
        (
            {"google_service_account_key": '{"private_key": "sesame", "gcs_base_url": "http://x"}'},
            "google_service_account_key.gcs_base_url: is no part of such a key (leave it out)",
        ),
        ({"aws_region": ["x"]}, "extra.aws_region: must be text or a number"),
    ],
)
def test_what_no_storage_takes_is_told(extra: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        DELTA.read(storage(**extra))
    assert told in refused.value.detail
    assert "sesame" not in str(refused.value)


def test_fields_beside_the_extra_mean_nothing() -> None:
    with pytest.raises(ConfigurationError, match="password: is no option of a storage"):
        DELTA.read(ConnectionFields("store", "delta", password="sesame"))


def test_no_secret_is_shown_and_all_of_them_arrive() -> None:
    options = DELTA.read(storage(aws_allow_http=True, aws_endpoint="http://minio:9000"))
    assert "sesame" not in repr(options) + options.summary
    again = DELTA.restore("store", options.given)
    assert isinstance(again, DeltaOptions)
    assert again.parameters == {**KEYS, "aws_allow_http": "true", "aws_endpoint": "http://minio:9000"}
    assert again.further_servers == {"aws_endpoint": ("minio", 9000)}


@pytest.mark.parametrize("address", ["169.254.169.254", "[fd00:ec2::254]", "2852039166"])
def test_an_endpoint_does_not_lead_to_a_metadata_service(address: str) -> None:
    fields = storage(aws_allow_http=True, aws_endpoint=f"http://{address}")
    found = {check.name: check for check in validate({"store": fields}, seconds=5).checks}
    assert found["further addresses"].outcome is Outcome.FAIL
    assert "is refused" in found["further addresses"].detail


def test_stored_keys_do_not_follow_the_storage_to_another_server() -> None:
    with pytest.raises(ConfigurationError, match="aws_secret_access_key: must be given anew"):
        alter(storage(), [SetOption("aws_endpoint", "https://evil")])
    assert alter(storage(), [SetOption("timeout", "5s")]).stored_extra()["timeout"] == "5s"
