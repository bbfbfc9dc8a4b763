"""Pageviews with a page, for as long as the DAG is not paused: an endless sink, with an epoch a second."""

# [START endless]
from datetime import timedelta

from airflow_provider_sinks import Sink, kafka, sink_dag

pageviews = Sink(
    name="pageviews_clean",
    source=kafka("kafka_prod", "pageviews", schema="viewtime long, userid string, pageid string"),
    select=["userid", "pageid", "viewtime"],
    where="pageid IS NOT NULL",
    target=kafka("kafka_prod", "pageviews-clean", key=["userid"]),
)
dag = sink_dag(pageviews, every=timedelta(seconds=1))  # validate >> submit; unpause to start
# [END endless]
