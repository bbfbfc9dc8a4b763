"""The parts of the local stack as fixtures. Each starts once per run, when the first test asks for it."""

from __future__ import annotations

import os
import re
import signal
import sys
import tempfile
import uuid
from collections.abc import Generator, Iterator
from pathlib import Path
from types import FrameType

import pytest
from confluent_kafka.admin import AdminClient

from airflow_provider_sinks.connectors.kafka.options import KafkaOptions
from airflow_provider_sinks.local import spark
from airflow_provider_sinks.local.broker import KafkaBroker
from airflow_provider_sinks.local.object_store import ObjectStore
from airflow_provider_sinks.local.postgres import Postgres
from tests import administrator
from tests.installed_connector import REDIS_EXAMPLE, Installed, install
from tests.long_tests import is_long
from tests.redis_server import RedisServer
from tests.support import TopicFactory


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take what ``make test`` and ``make test-long`` differ by."""
    group = parser.getgroup("sinks").addoption
    group("--leave-long", action="store_true", help="leave out the tests that tests/long_tests.py names")
    group("--only-long", action="store_true", help="run only those")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose by length."""
    for option, unwanted in (("--leave-long", True), ("--only-long", False)):
        if config.getoption(option):
            config.hook.pytest_deselected(items=[one for one in items if is_long(one.nodeid) is unwanted])
            items[:] = [one for one in items if is_long(one.nodeid) is not unwanted]


def pytest_configure(config: pytest.Config) -> None:
    """Give the run an Airflow home of its own, and keep out the settings of the user's Airflow and Spark."""
    if "airflow" in sys.modules:
        raise pytest.UsageError(
            "a conftest imports Airflow: it would use the home and the database of the user"
        )
    _listen()
    for name in [name for name in os.environ if name.startswith(("AIRFLOW_", "SPARK_", "PYSPARK_"))]:
        del os.environ[name]
    home = tempfile.TemporaryDirectory(prefix="sinks-tests-airflow-")
    config.add_cleanup(home.cleanup)
    os.environ["AIRFLOW_HOME"] = home.name
    os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
    os.environ["AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT"] = "0"  # its alarm would put off pytest's own


def pytest_runtest_logfinish() -> None:
    """Listen again: a task that ran inside this process left a handler of its own."""
    _listen()


def _listen() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end_in_order)


def _end_in_order(number: int, frame: FrameType | None) -> None:
    """End the run, and what it started. SystemExit would only end the test that runs.

    SIGINT is among the signals because a program that a shell starts in the background ignores it. Behind an
    exit code of its own pytest would not tell what had failed until then.
    """
    del frame
    pytest.exit(f"ended by {signal.Signals(number).name}", returncode=pytest.ExitCode.INTERRUPTED)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail instead of skipping: a missing service is a fault of the set-up, not a reason to say less."""
    report = yield
    if report.skipped:
        report.outcome = "failed"
        report.longrepr = f"a test must not be skipped: {report.longrepr}"
    return report


@pytest.fixture(scope="session")
def installed_files(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The example connector, installed; this process finds it only where a test says so."""
    return install(tmp_path_factory.mktemp("connector"))


@pytest.fixture(scope="session")
def installed_redis(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The example connector for Redis, likewise."""
    return install(tmp_path_factory.mktemp("redis connector"), REDIS_EXAMPLE)


@pytest.fixture(scope="session")
def redis_server(stack_folder: Path) -> Iterator[RedisServer]:
    """A Redis that everyone shares; use keys of your own."""
    with RedisServer.started(stack_folder / "redis") as running:
        yield running


@pytest.fixture(scope="session")
def stack_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the parts of the stack keep their data and logs; the name has a space, as a user's may."""
    return tmp_path_factory.mktemp("local stack")


@pytest.fixture(scope="session")
def broker(stack_folder: Path) -> Iterator[KafkaBroker]:
    """A broker that everyone shares. Tests that stop, freeze or reconfigure one start their own."""
    with KafkaBroker.start(stack_folder / "kafka") as running:
        yield running


@pytest.fixture(scope="session")
def kafka_options(broker: KafkaBroker) -> KafkaOptions:
    """The options of an Airflow connection to the shared broker."""
    return KafkaOptions.from_connection_extra(broker.client_config(), "kafka_test")


@pytest.fixture
def topic(broker: KafkaBroker, request: pytest.FixtureRequest) -> TopicFactory:
    """Make topics that belong to one test only: ``pytest_<test>_<uuid>``."""
    admin = AdminClient(broker.client_config())
    test = re.sub(r"[^A-Za-z0-9]+", "-", request.node.name)[:80].strip("-")

    def make(suffix: str = "", partitions: int = 1, **config: str) -> str:
        name = "_".join(filter(None, ["pytest", test, suffix, uuid.uuid4().hex[:12]]))
        administrator.create_topic(admin, name, partitions, **config)
        return name

    return make


@pytest.fixture(scope="session")
def postgres(stack_folder: Path) -> Iterator[Postgres]:
    """A Postgres that everyone shares; use a schema or table name of your own."""
    with Postgres.start(stack_folder / "postgres") as running:
        yield running


@pytest.fixture(scope="session")
def another_postgres(stack_folder: Path) -> Iterator[Postgres]:
    """Another Postgres, with an identifier of its own."""
    with Postgres.start(stack_folder / "another-postgres") as running:
        yield running


@pytest.fixture(scope="session")
def object_store(stack_folder: Path) -> Iterator[ObjectStore]:
    """A store that speaks S3, with a bucket ``lake`` that everyone shares; use a prefix of your own."""
    with ObjectStore.start(stack_folder / "object store", "lake") as running:
        yield running


@pytest.fixture(scope="session")
def spark_jars() -> tuple[Path, ...]:
    """The jars that Spark needs for Kafka beyond its own."""
    return spark.kafka_jars()
