"""Pageviews as rows of a Postgres table."""

# [START table]
from airflow_provider_sinks import Sink, kafka, postgres, sink_dag

SCHEMA = "viewtime long, userid string, pageid string"
pageviews = Sink(
    name="pageviews_table",
    source=kafka("kafka_prod", "pageviews", schema=SCHEMA, max_offsets_per_epoch=10_000),
    select=["userid", "pageid", "viewtime"],
    target=postgres("pg_prod", "public.pageviews", create=True),
)
dag = sink_dag(pageviews)  # rows and progress are in one transaction of the database
# [END table]
