"""The whole local stack: broker, registry, Postgres, object store, and an Airflow that is connected to all.

The parts start side by side, because Airflow takes longer than all the others together. Spark is no service
here: the Airflow worker runs ``spark-submit`` with a master of ``local[2,4]``, which is two cores and four
attempts for each task.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from threading import Event

from airflow_provider_sinks.local import spark
from airflow_provider_sinks.local.airflow import AirflowStack
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.jars import KAFKA_VERSION
from airflow_provider_sinks.local.listeners import Mechanism, Sasl
from airflow_provider_sinks.local.object_store import BUCKET, ObjectStore, delta_extra, iceberg_extra
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.local.progress import step
from airflow_provider_sinks.local.schema_registry import SchemaRegistry

SPARK_MASTER = "local[2,4]"
_QUICK_START = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
"""Of a job that lasts seconds: a second compiler or a parallel collector would not pay for itself."""
USER = "sinks"
"""Of the broker's second listener."""
PASSWORD_VARIABLE = "sinks_secret_kafka"  # noqa: S105  the name of a Variable

Fill = Callable[["Stack", Event], None]
"""Puts data into the services; told by the event to leave the rest out."""


class Stack:
    """The parts, from :meth:`start` to :meth:`stop`.

    :param folder: for their data, configuration and logs.
    """

    broker: KafkaBroker
    postgres: Postgres
    registry: SchemaRegistry
    store: ObjectStore
    airflow_postgres: Postgres
    """Where Airflow alone keeps its state."""
    airflow: AirflowStack

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def start(self, dags_folder: Path, fill: Fill) -> None:
        """Start everything, and return when it answers and is filled; ``stop`` it also when this fails."""
        cancelled = Event()
        with ThreadPoolExecutor(max_workers=1) as beside:
            services = beside.submit(self._start_services, fill, cancelled)
            try:
                self._start_airflow(dags_folder)
                services.result()
            except BaseException:
                cancelled.set()
                raise
        self._connect()

    def stop(self) -> None:
        """Stop what was started, Airflow first, because its tasks use the others."""
        if airflow := vars(self).get("airflow"):
            airflow.stop()
        with ThreadPoolExecutor() as pool:
            services = [
                vars(self).get(name)
                for name in ("airflow_postgres", "broker", "postgres", "registry", "store")
            ]
            list(pool.map(lambda service: service.stop(), filter(None, services)))

    def launches(self, sink: str) -> Path:
        """Return the folder with the launch directories of a sink."""
        return self.airflow.home / "sinks" / "launches" / sink

    def _start_services(self, fill: Fill, cancelled: Event) -> None:
        with step("Kafka broker") as line:
            user = Sasl(Mechanism.SCRAM_SHA_512, {USER: secrets.token_urlsafe(12)})
            self.broker = KafkaBroker.start(self.folder / "kafka", sasl=user)
            plain, secured = self.broker.admin_bootstrap, self.broker.bootstrap
            line.leave(f"{KAFKA_VERSION} on {plain}, and on {secured} for user {USER}")
        with step("Postgres") as line:
            self.postgres = Postgres.start(self.folder / "postgres")
            line.leave(f"on {self.postgres.host}:{self.postgres.port}")
        with step("Schema registry") as line:
            self.registry = SchemaRegistry.start(self.folder / "registry")
            line.leave(f"Apicurio on {self.registry.url}")
        with step("Object store") as line:
            self.store = ObjectStore.start(self.folder / "store", BUCKET)
            line.leave(f"S3Proxy on {self.store.url}, bucket {BUCKET}")
        if not cancelled.is_set():
            fill(self, cancelled)

    def _start_airflow(self, dags_folder: Path) -> None:
        environment = {
            **spark.spark_environment(),
            "SPARK_CONF_DIR": str(spark_settings(self.folder / "spark")),
            # An edited DAG file is read at once all the same; reading the others again takes half a core.
            "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "600",
        }
        self.airflow_postgres = Postgres.start(self.folder / "metadata")
        self.airflow = AirflowStack.start(
            self.folder / "airflow", dags_folder, environment, postgres=self.airflow_postgres, forked=True
        )

    def _connect(self) -> None:
        """Give Airflow its connections, through its API, as a user would."""
        with step("Connections") as line:
            postgres = self.postgres
            self.airflow.add_connection("kafka_prod", "kafka", extra=self.broker.client_config())
            self.airflow.add_connection("pg_prod", "postgres", **postgres.connection_fields)
            self.airflow.add_connection("registry_prod", "http", host=self.registry.url)
            self.airflow.add_connection(
                "lake_prod", "iceberg", **postgres.connection_fields, extra=iceberg_extra(self.store)
            )
            self.airflow.add_connection("store_prod", "delta", extra=delta_extra(self.store))
            self.airflow.add_connection("spark_default", "spark", host=SPARK_MASTER)
            self.airflow.add_connection("airflow_api_default", "http", **self.airflow.account())
            assert self.broker.sasl is not None  # noqa: S101  it was started with it
            self.airflow.add_variable(PASSWORD_VARIABLE, self.broker.sasl.users[USER])
            airflow = version("apache-airflow")
            names = "kafka_prod, pg_prod, registry_prod, lake_prod, store_prod, airflow_api_default"
            line.leave(f"{names}, spark_default ({SPARK_MASTER}) in Airflow {airflow}")


def spark_settings(folder: Path) -> Path:
    """Write what a Spark installation would have: the jars of its Kafka source, and its Java options.

    :param folder: is made, and returned: what ``SPARK_CONF_DIR`` names.
    """
    folder.mkdir(parents=True)
    settings = {
        "spark.jars": ",".join(map(str, spark.kafka_jars())),
        "spark.driver.defaultJavaOptions": _QUICK_START,
    }
    lines = [f"{name} {value}\n".replace("\\", "\\\\") for name, value in settings.items()]
    (folder / "spark-defaults.conf").write_text("".join(lines))
    return folder
