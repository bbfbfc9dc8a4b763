"""Pageviews, each with the region of the user who made it. In the README; run by ``make demo``."""

# [START factory]
from airflow_provider_sinks import Sink, kafka, postgres, sink_dag

SCHEMA = "viewtime long, userid string, pageid string"
pageviews = Sink(
    name="pageviews_enriched",
    source=kafka("kafka_prod", "pageviews", schema=SCHEMA, max_offsets_per_epoch=60_000),
    lookups={"users": postgres("pg_prod", "public.users")},
    query="SELECT p.userid, u.region, p.pageid, p.viewtime FROM source p LEFT JOIN users u USING (userid)",
    target=kafka("kafka_prod", "pageviews-enriched", key="userid"),
)
dag = sink_dag(pageviews)  # validate >> check topics >> submit
# [END factory]
