"""One sink by hand: its three tasks in an Airflow DAG of one's own."""

# [START by_hand]
from datetime import UTC, datetime

from airflow.sdk import DAG

from airflow_provider_sinks import Sink, kafka
from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator
from airflow_provider_sinks.operators.validate_connection import ValidateConnectionOperator
from airflow_provider_sinks.retry_policy import SINK_RETRY_POLICY
from airflow_provider_sinks.sensors.check_topics import CheckTopicsSensor

clicks = Sink(
    name="clicks_by_hand",
    source=kafka("kafka_prod", "clicks", schema="at long, userid string, button string"),
    select=["userid", "at"],
    where="button = 'buy'",
    target=kafka("kafka_prod", "clicks-bought", key="userid"),
)

with DAG("clicks_by_hand", schedule="@hourly", start_date=datetime(2025, 1, 1, tzinfo=UTC), catchup=False):
    validate = ValidateConnectionOperator(task_id="validate", sink=clicks)
    check_topics = CheckTopicsSensor(task_id="check_topics", sink=clicks, timeout=600)
    submit = SubmitSinkJobOperator(
        task_id="submit", sink=clicks, retries=3, retry_policy=SINK_RETRY_POLICY, max_active_tis_per_dag=1
    )
    validate >> check_topics >> submit
# [END by_hand]
