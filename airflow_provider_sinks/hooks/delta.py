"""The type of the connections to the storage of Delta tables, so that Airflow knows it."""

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseHook


class DeltaHook(BaseHook):
    """Makes ``delta`` a type of connection; sinks read such connections by themselves."""

    conn_name_attr = "delta_conn_id"
    default_conn_name = "delta_default"
    conn_type = "delta"
    hook_name = "Delta tables (storage)"

    @classmethod
    def get_ui_field_behaviour(cls) -> dict[str, Any]:
        """Return that all options stand in the extra."""
        return {
            "hidden_fields": ["host", "schema", "login", "password", "port"],
            "relabeling": {},
            "placeholders": {"extra": '{"aws_region": "...", "aws_access_key_id": "..."}'},
        }
