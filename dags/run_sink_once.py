"""Two forms that run a sink once, into a topic and into a table: it takes what its source holds, and ends."""

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

# [START table]
run_sink_once_into_a_table = run_sink_once_dag(
    "run_sink_once_into_a_table",
    target="postgres",
    connections=["kafka_prod"],
    target_connections=["pg_prod"],
    values={
        "sink": "clicks_once_table",
        "connection": "kafka_prod",
        "source": "clicks",
        "schema": "at long, userid string, button string",
        "where": "button = 'buy'",
        "target_connection": "pg_prod",
        "target": "public.clicks",
        "mode": "upsert",
        "key": "userid, at",
    },
)
# [END table]
