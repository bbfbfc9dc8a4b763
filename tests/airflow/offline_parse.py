"""Parses a DAG folder as a DAG processor does, in a world without network, Spark, Kafka and settings.

Prints JSON: import errors, and each DAG as Airflow serialises it. Run as its own process, because it breaks
sockets and imports for good.
"""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import Any, NoReturn

FORBIDDEN = (
    *("pyspark", "confluent_kafka", "psycopg", "pyiceberg", "deltalake"),
    *("adbc_driver_postgresql", "kubernetes"),
)


class Blocked:
    """A finder that finds the forbidden packages and refuses to load them."""

    def find_spec(self, name: str, *_: Any) -> None:
        if name.partition(".")[0] in FORBIDDEN:
            raise ImportError(f"{name} may not be imported while DAGs are parsed")


def no_network(*_: Any, **__: Any) -> NoReturn:
    raise OSError("no network while DAGs are parsed")


def no_lookup(*_: Any, **__: Any) -> NoReturn:
    raise RuntimeError("no connection and no Variable may be read while DAGs are parsed")


def parse(folder: Path) -> dict[str, Any]:
    from airflow.dag_processing.dagbag import DagBag
    from airflow.sdk.execution_time import context
    from airflow.serialization.serialized_objects import DagSerialization

    context._get_connection = no_lookup
    context._get_variable = no_lookup
    context._get_variable_keys = no_lookup
    context._set_variable = no_lookup
    bag = DagBag(folder)
    dags = {dag_id: DagSerialization.to_dict(dag) for dag_id, dag in sorted(bag.dags.items())}
    return {"errors": bag.import_errors, "dags": dags, "modules": sorted(sys.modules)}


def main() -> None:
    sys.meta_path.insert(0, Blocked())
    socket.socket.connect = no_network  # type: ignore[method-assign]
    socket.getaddrinfo = no_network
    output = sys.stdout
    sys.stdout = sys.stderr
    result = parse(Path(sys.argv[1]))
    json.dump(result, output)


if __name__ == "__main__":
    main()
