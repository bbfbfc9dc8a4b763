"""The presets of a DAG's schedule. Whether a cron expression is right, Airflow says itself."""

from __future__ import annotations

from airflow_provider_sinks.core.errors import nearest

PRESETS = (
    "@once",
    "@continuous",
    "@hourly",
    "@daily",
    "@midnight",
    "@weekly",
    "@monthly",
    "@quarterly",
    "@yearly",
    "@annually",
)


def preset_hint(schedule: object) -> str | None:
    """Return what would be right where a schedule is written as a preset and is none; else None."""
    if not isinstance(schedule, str) or not schedule.startswith("@") or schedule in PRESETS:
        return None
    return nearest(schedule, PRESETS) or f"one of {', '.join(PRESETS)}"
