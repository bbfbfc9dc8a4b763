"""What is checked of a Spark connection whose drivers run on YARN."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.airflow.fake_manager import fake_manager


@pytest.mark.usefixtures("airflow_db")
def test_a_manager_that_answers_says_what_it_is(connections: Callable[..., None]) -> None:
    from airflow_provider_sinks.operators.validate.spark_checks import spark_checks

    with fake_manager() as manager:
        connections(spark_yarn=_connection(manager.url))
        (check,) = [check for check in spark_checks("spark_yarn") if check.name == "resource manager"]

    assert (check.outcome, check.detail) == ("pass", "Hadoop 3.4.2, STARTED")


@pytest.mark.usefixtures("airflow_db")
def test_a_manager_that_does_not_answer_may_answer_later(connections: Callable[..., None]) -> None:
    from airflow_provider_sinks.operators.validate.spark_checks import spark_checks

    connections(spark_yarn=_connection("http://127.0.0.1:1"))

    (check,) = [check for check in spark_checks("spark_yarn") if check.name == "resource manager"]

    assert (check.outcome, check.retryable) == ("fail", True)


@pytest.mark.usefixtures("airflow_db")
def test_a_connection_that_names_no_manager_is_for_the_user_to_mend(connections: Callable[..., None]) -> None:
    from airflow_provider_sinks.operators.validate.spark_checks import spark_checks

    connections(spark_yarn={"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "cluster"}})

    (check,) = [check for check in spark_checks("spark_yarn") if check.name == "resource manager"]

    assert (check.outcome, check.retryable) == ("fail", False)
    assert "yarn_resourcemanager_webapp_address" in check.detail


@pytest.mark.usefixtures("airflow_db")
@pytest.mark.parametrize("url", ["http://169.254.169.254", "http://[::ffff:169.254.169.254]:8088"])
def test_nothing_is_sent_to_a_metadata_service(connections: Callable[..., None], url: str) -> None:
    from airflow_provider_sinks.operators.validate.spark_checks import spark_checks

    connections(spark_yarn=_connection(url))

    (check,) = [check for check in spark_checks("spark_yarn") if check.name == "resource manager"]

    assert (check.outcome, check.retryable) == ("fail", False)
    assert "169.254.169.254 is refused" in check.detail


@pytest.mark.usefixtures("airflow_db")
def test_a_redirect_to_a_metadata_service_is_not_followed(connections: Callable[..., None]) -> None:
    from airflow_provider_sinks.operators.validate.spark_checks import spark_checks

    with fake_manager() as manager:
        manager.redirects_to = "http://169.254.169.254/latest/meta-data"
        connections(spark_yarn=_connection(manager.url))
        (check,) = [check for check in spark_checks("spark_yarn") if check.name == "resource manager"]

    assert "169.254.169.254 is refused" in check.detail


@pytest.mark.usefixtures("airflow_db")
def test_what_a_stranger_answers_is_not_repeated(connections: Callable[..., None]) -> None:
    from airflow_provider_sinks.operators.validate.spark_checks import spark_checks

    with fake_manager() as manager:
        manager.broken = True
        connections(spark_yarn=_connection(manager.url))
        (check,) = [check for check in spark_checks("spark_yarn") if check.name == "resource manager"]

    assert "HTTP 503 to GET info" in check.detail
    assert "standby" not in check.detail


def _connection(url: str) -> dict[str, object]:
    extra = {"deploy-mode": "cluster", "yarn_resourcemanager_webapp_address": url}
    return {"conn_type": "spark", "host": "yarn", "extra": extra}
