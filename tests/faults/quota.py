"""How fast a broker gives records to a client: so that a sink which only copies them takes its time."""

from __future__ import annotations

import subprocess

from airflow_provider_sinks.local import jars
from airflow_provider_sinks.local.processes import java_program

_SECONDS = 120.0


def limit_reading(bootstrap: str, client_id: str, bytes_per_second: int) -> None:
    """Limit what all clients of this name read of a broker; librdkafka's admin client has no word for it.

    :param bootstrap: a listener for which nobody has to log in.
    """
    class_path = ":".join(map(str, jars.resolve(*jars.KAFKA_BROKER)))
    limit = f"consumer_byte_rate={bytes_per_second}"
    entity = ["--entity-type", "clients", "--entity-name", client_id]
    tool = [java_program(), "-XX:TieredStopAtLevel=1", "-cp", class_path, "kafka.admin.ConfigCommand"]
    command = [*tool, "--bootstrap-server", bootstrap, "--alter", *entity, "--add-config", limit]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
