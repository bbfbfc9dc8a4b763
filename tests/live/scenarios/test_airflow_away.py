"""The API server is gone for a while, through which each task speaks with Airflow."""

from __future__ import annotations

from airflow_provider_sinks.local.airflow import AirflowStack
from airflow_provider_sinks.local.broker import KafkaBroker
from tests.live.client_sink import client_sink

_EPOCHS_MEANWHILE = 10


def test_a_sink_goes_on_while_the_api_server_is_away(airflow: AirflowStack, broker: KafkaBroker) -> None:
    airflow.add_connection("spark_away", "spark", host="local[1,4]")
    sink = client_sink(airflow, broker, "away", "spark_away")
    server = airflow.services["api-server"]
    with sink.fed_all_the_time():
        run = sink.start()
        before = sink.wait_running(1).epoch
        server.kill()
        try:
            sink.wait_until(
                lambda: (status := sink.status(1)) is not None and status.epoch > before + _EPOCHS_MEANWHILE,
                "epochs without an Airflow",
                30,
            )
        finally:
            server.start()
            server.wait_until(airflow.healthy, 60)
        heard = sink.witness()["epoch"]
        sink.wait_until(lambda: sink.witness()["epoch"] > heard, "the witness to follow", 60)
        sink.wait_until(lambda: sink.driver_count() == 1, "one driver")
        sink.mark(run, "failed")
        sink.wait_no_driver()
    sink.demand_exact()
