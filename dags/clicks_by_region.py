"""Many sinks mapped: one Airflow task for each, made when the DAG runs."""

# [START mapped]
from datetime import UTC, datetime

from airflow.sdk import DAG

from airflow_provider_sinks import kafka, sink_assets
from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator
from airflow_provider_sinks.operators.validate_connection import ValidateConnectionOperator

SCHEMA = "at long, userid string, button string"
sinks = [
    {
        "name": f"clicks_{region}",
        "source": kafka("kafka_prod", f"clicks-{region}", schema=SCHEMA),
        "where": "userid IS NOT NULL",
        "target": kafka("kafka_prod", f"clicks-{region}-clean", key="userid"),
    }
    for region in ("eu", "us")
]

with DAG("clicks_by_region", schedule="@daily", start_date=datetime(2025, 1, 1, tzinfo=UTC), catchup=False):
    validate = ValidateConnectionOperator.partial(task_id="validate").expand(sink=sinks)
    submit = SubmitSinkJobOperator.partial(
        task_id="submit",
        outlets=sink_assets(sinks),  # so that Airflow knows the sinks, and each success is the event of one
        max_active_tis_per_dag=2,
    ).expand(sink=sinks)
    validate >> submit
# [END mapped]
