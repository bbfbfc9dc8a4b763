"""A DAG that Airflow runs whenever a sink has written."""

# [START asset]
from datetime import UTC, datetime
from typing import Any

from airflow.sdk import DAG, Asset, task

with DAG(
    "pageviews_report",
    schedule=[Asset("sink:pageviews_enriched")],
    start_date=datetime(2025, 1, 1, tzinfo=UTC),
    catchup=False,
):

    @task
    def report(triggering_asset_events: Any = None) -> list[dict[str, Any]]:
        """Return what each run of the sink wrote: its event carries rows, epoch and offsets."""
        events = [event for found in (triggering_asset_events or {}).values() for event in found]
        return [dict(event.extra) for event in events]

    report()
# [END asset]
