"""A form that runs a sink once: it takes what the source topic holds, and ends."""

# [START once]
from datetime import UTC, datetime
from typing import Any

from airflow.sdk import DAG, Param

from airflow_provider_sinks.operators.submit_sink_job import SubmitSinkJobOperator

TOPIC: dict[str, Any] = {"type": "string", "pattern": r"^[A-Za-z0-9._-]{1,249}$"}

with DAG(
    "run_sink_once",
    schedule=None,
    start_date=datetime(2025, 1, 1, tzinfo=UTC),
    max_active_runs=1,
    tags=["sinks"],
    params={
        "sink": Param(
            "clicks_once",
            type="string",
            pattern=r"^[A-Za-z0-9_-]{1,100}$",
            title="Sink",
            description="A name of its own. The same name again goes on where the last run ended.",
        ),
        "connection": Param("kafka_prod", type="string", minLength=1, title="Kafka connection"),
        "source": Param("clicks", title="Source topic", **TOPIC),
        "schema": Param(
            "at long, userid string, button string",
            type="string",
            minLength=1,
            title="Its columns",
            description="As in SQL; the records are JSON.",
        ),
        "where": Param("button = 'buy'", type="string", minLength=1, title="Rows to take", examples=["true"]),
        "target": Param("clicks-once", title="Target topic", **TOPIC),
        "key": Param("userid", type="string", minLength=1, title="Column that is the key"),
        "accept": Param(
            None,
            type=["null", "string"],
            title="Answer to a refusal",
            description="The code that the refusal printed, or nothing.",
        ),
    },
):
    SubmitSinkJobOperator(
        task_id="submit",
        sink={
            "name": "{{ params.sink }}",
            "source": {
                "kafka": {
                    "connection": "{{ params.connection }}",
                    "topic": "{{ params.source }}",
                    "schema": "{{ params.schema }}",
                }
            },
            "where": "{{ params.where }}",
            "target": {
                "kafka": {
                    "connection": "{{ params.connection }}",
                    "topic": "{{ params.target }}",
                    "key": ["{{ params.key }}"],
                }
            },
        },
        accept="{{ params.accept or '' }}",
        retries=2,
    )
# [END once]
