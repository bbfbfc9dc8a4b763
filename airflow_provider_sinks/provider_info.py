"""What Airflow's ``apache_airflow_provider`` entry point returns: which modules hold what.

Not called ``get_provider_info.py``: a module of that name would hide the function in the package.
"""

from __future__ import annotations

from typing import Any

_INTEGRATION = "Streaming sinks"
_PACKAGE = "airflow_provider_sinks"
_LINKS = ("SparkUILink", "SparkHistoryLink", "SinkStatusLink")


def get_provider_info() -> dict[str, Any]:
    """Return the metadata of this provider, as Airflow's ``provider_info.schema.json`` wants it."""
    return {
        "package-name": "airflow-provider-sinks",
        "name": _INTEGRATION,
        "description": "Exactly-once streaming sinks, with stock Spark and stock Kafka.",
        "integrations": [{"integration-name": _INTEGRATION, "tags": ["service"]}],
        "operators": _modules(
            "operators.alter_connection_restart",
            "operators.replay_dead_letters",
            "operators.sink_life",
            "operators.submit_sink_job",
            "operators.validate_connection",
        ),
        "sensors": _modules("sensors.check_topics"),
        "connection-types": [
            {"connection-type": "delta", "hook-class-name": f"{_PACKAGE}.hooks.delta.DeltaHook"}
        ],
        "extra-links": [f"{_PACKAGE}.links.{name}" for name in _LINKS],
        "triggers": _modules("triggers.check_topics", "triggers.sink_driver"),
        "cli": [f"{_PACKAGE}.cli.definition.get_cli_commands"],
    }


def _modules(*names: str) -> list[dict[str, Any]]:
    return [{"integration-name": _INTEGRATION, "python-modules": [f"{_PACKAGE}.{name}" for name in names]}]
