"""A driver loads only what its sink needs: whoever installs ``[kafka]`` alone can run sinks from Kafka."""

from __future__ import annotations

import subprocess
import sys

_OF_OTHER_EXTRAS = (
    "psycopg",
    "adbc_driver_postgresql",
    "pyiceberg",
    "deltalake",
    "sqlalchemy",
    "authlib",
    "httpx2",
)


def test_a_driver_starts_where_only_the_extra_of_kafka_is_installed() -> None:
    code = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({_OF_OTHER_EXTRAS}))\n"  # importing one of them fails
        "import airflow_provider_sinks.streaming.job\n"
        "from airflow_provider_sinks.core.spec.kinds import load, points\n"
        "print(*(load(name).__class__.__name__ for name in points()))\n"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert {"DeltaKind", "IcebergKind", "KafkaKind", "PostgresKind"} <= set(done.stdout.split())
