"""A form that runs a sink once: it takes what the source topic holds, and ends."""

# [START once]
from airflow_provider_sinks.forms import run_sink_once_dag

run_sink_once = run_sink_once_dag(
    connections=["kafka_prod"],
    values={
        "sink": "clicks_once",
        "connection": "kafka_prod",
        "source": "clicks",
        "schema": "at long, userid string, button string",
        "where": "button = 'buy'",
        "target": "clicks-once",
        "key": "userid",
    },
)
# [END once]
