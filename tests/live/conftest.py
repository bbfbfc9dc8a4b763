"""What only the live tests start: an Airflow, and a Spark driver that many launches share."""

from __future__ import annotations

import gc
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from psycopg import sql
from pyspark.sql import SparkSession

from airflow_provider_sinks.connectors.iceberg.options import IcebergOptions
from airflow_provider_sinks.local import jars, spark
from airflow_provider_sinks.local.airflow import AirflowStack
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.postgres import Postgres
from airflow_provider_sinks.local.schema_registry import SchemaRegistry
from airflow_provider_sinks.local.yarn import YarnCluster
from tests.faults.driver import QUICK_START
from tests.installed_connector import Installed
from tests.live import people
from tests.live.lake_spark import LakeSpark, delta_spark, iceberg_spark
from tests.live.registered import Registered
from tests.live.shared_driver import SharedDriver
from tests.live.stage import Stage

_AIRFLOW = {
    "AIRFLOW__CORE__PARALLELISM": "8",  # stories run side by side
    "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": people.USERS,
    "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "12",  # a lost scheduler is missed sooner
    "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "5",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "30",  # and so is a lost worker
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
    "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "12",  # and a lost triggerer
}


@pytest.fixture(scope="session")
def airflow_postgres(stack_folder: Path) -> Iterator[Postgres]:
    """The server with Airflow's own database."""
    with Postgres.start(stack_folder / "metadata") as running:
        yield running


@pytest.fixture(scope="session")
def airflow(stack_folder: Path, airflow_postgres: Postgres) -> Iterator[AirflowStack]:
    """An Airflow with Spark in its PATH, and the connection to itself that some operators take by default.

    Write DAG files into its ``dags_folder``; each test its own.
    """
    home = stack_folder / "airflow"
    env = {**spark.spark_environment(), **_AIRFLOW}
    with AirflowStack.start(home, home / "dags", env, postgres=airflow_postgres) as running:
        user = {"login": running.user, "password": running.password}
        running.add_connection("airflow_api_default", "http", host=running.url, **user)
        yield running


@pytest.fixture(scope="session")
def yarn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[YarnCluster]:
    """A resource manager and a node that everyone shares; find your applications by tags of your own."""
    with YarnCluster.start(tmp_path_factory.mktemp("yarn")) as running:
        yield running


@pytest.fixture(scope="session")
def shared_driver(
    tmp_path_factory: pytest.TempPathFactory, installed_files: Installed, installed_redis: Installed
) -> Iterator[SharedDriver]:
    """A running driver, that finds the example connectors; the tests of sinks give it their launches."""
    folder = tmp_path_factory.mktemp("shared driver")
    driver = SharedDriver(folder, installed_files.folder, installed_redis.folder)
    try:
        yield driver.wait_ready()
    finally:
        driver.close()


@pytest.fixture
def stage(
    broker: KafkaBroker,
    postgres: Postgres,
    shared_driver: SharedDriver,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> Iterator[Stage]:
    """The place for a test's sinks, on the shared broker."""
    stage = Stage(broker, postgres, shared_driver, tmp_path / "with a space")
    stage.driver_rows = getattr(request, "param", stage.driver_rows)
    yield stage
    stage.close()


@pytest.fixture(scope="session")
def registry(stack_folder: Path) -> Iterator[SchemaRegistry]:
    """A schema registry that everyone shares; use subjects of your own."""
    with SchemaRegistry.start(stack_folder / "registry") as running:
        yield running


@pytest.fixture
def registered(stage: Stage, registry: SchemaRegistry) -> Iterator[Registered]:
    """The stage with a registry, which its sinks know as connection ``registry``."""
    whole = Registered(stage, registry)
    with whole.client:
        yield whole


@pytest.fixture(scope="session")
def lake_spark(tmp_path_factory: pytest.TempPathFactory, postgres: Postgres) -> Iterator[LakeSpark]:
    """A Spark with Iceberg's own jar, on the catalog that the sinks of a stage write to."""
    extra = {"warehouse": f"file://{postgres.log.parent / 'warehouse'}"}
    options = IcebergOptions.from_connection("lake", **postgres.connection_fields, extra=extra)
    running = iceberg_spark(tmp_path_factory.mktemp("lake spark"), options)
    yield running
    running.close()


@pytest.fixture
def schema(stage: Stage) -> str:
    """A schema of its own."""
    name = f"sinks_{uuid.uuid4().hex[:8]}"
    with stage.postgres.connect() as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
    return name


@pytest.fixture(scope="session")
def spark_session() -> Iterator[SparkSession]:
    """A Spark inside this process, for SQL alone; views and settings of it are shared.

    It has the driver of Postgres from its start: of a jar that comes later by ``ADD JAR``, from a path with a
    space, Spark finds no class. Its Python workers have the packages that this process has.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        yield from _spark_session()


def _spark_session() -> Iterator[SparkSession]:
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", ",".join(map(str, jars.resolve(jars.SPARK_JDBC))))
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", QUICK_START)
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
    gc.collect()


@pytest.fixture(scope="session")
def delta_reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LakeSpark]:
    """A Spark with Delta's own jars; tables are called by their paths: ``delta.`/a/b```."""
    running = delta_spark(tmp_path_factory.mktemp("delta spark"))
    yield running
    running.close()
