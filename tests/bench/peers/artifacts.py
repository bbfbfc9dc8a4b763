"""What the peers need beyond this project: jars, Flink's libraries, and small Java classes compiled at need.

Everything is fetched once. Nothing of it is needed by the tests or the wheel.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from airflow_provider_sinks.local import jars
from airflow_provider_sinks.local.processes import LocalServiceError, java_program
from airflow_provider_sinks.local.progress import step

FLINK_VERSION = "2.2.1"
FLINK_KAFKA_VERSION = "5.0.0-2.2"
FLINK_JDBC_VERSION = "4.0.0-2.0"
POSTGRES_JDBC = "org.postgresql:postgresql:42.7.14"
_FLINK_LIBRARIES = f"apache-flink-libraries=={FLINK_VERSION}"
_LOGGING = "org.apache.logging.log4j:log4j-slf4j-impl:2.25.3"
_FLINK_CONNECTORS = (
    f"org.apache.flink:flink-sql-connector-kafka:{FLINK_KAFKA_VERSION}",
    f"org.apache.flink:flink-connector-jdbc-core:{FLINK_JDBC_VERSION}",
    f"org.apache.flink:flink-connector-jdbc-postgres:{FLINK_JDBC_VERSION}",
    POSTGRES_JDBC,
)
_JAVA = Path(__file__).with_name("java")
KEPT = Path(__file__).parents[3] / "build" / "bench" / "peers"
_HEAP = "-Xmx2g"
"""As Spark's driver gets."""
_FLINK_OPENS = """
    java.lang java.net java.io java.nio sun.nio.ch java.lang.reflect java.text java.time java.util
    java.util.concurrent java.util.concurrent.atomic java.util.concurrent.locks
    """
"""What Flink's own scripts open to it."""


def versions() -> str:
    """Return what the peers are, for the head of the output."""
    flink = f"Flink {FLINK_VERSION} with its Kafka connector {FLINK_KAFKA_VERSION}"
    return f"{flink}; Kafka Streams, Connect and tools {jars.KAFKA_VERSION}"


def streams_command() -> list[str]:
    """Return the beginning of a command line of Kafka Streams."""
    needed = _kafka("kafka-streams")
    return _command("StreamsCopy", [_compiled("StreamsCopy", needed), *needed])


def flink_command() -> list[str]:
    """Return the beginning of a command line of Flink."""
    needed = _flink()
    opens = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _FLINK_OPENS.split()]
    return _command("FlinkSql", [_compiled("FlinkSql", needed), *needed], *opens)


def connect_command() -> list[str]:
    """Return the beginning of a command line of a Connect worker that has MirrorMaker 2."""
    needed = _kafka("connect-runtime", "connect-mirror", "connect-json")
    return _command("org.apache.kafka.connect.cli.ConnectDistributed", needed)


def tool_command(name: str) -> list[str]:
    """Return the beginning of a command line of one of Kafka's own tools, such as ``ProducerPerformance``."""
    return _command(f"org.apache.kafka.tools.{name}", _kafka("kafka-tools"))


def _command(main: str, class_path: list[Path], *options: str) -> list[str]:
    logging = f"-Dlog4j2.configurationFile={(_JAVA / 'log4j2.properties').as_uri()}"
    return [java_program(), _HEAP, *options, logging, "-cp", ":".join(map(str, class_path)), main]


def _kafka(*artifacts: str) -> list[Path]:
    wanted = [f"org.apache.kafka:{artifact}:{jars.KAFKA_VERSION}" for artifact in artifacts]
    return list(jars.resolve(*wanted, _LOGGING))


@cache
def _flink() -> list[Path]:
    """Return Flink's jars, which its Python package brings, with those of its connectors.

    Flink names what it needs itself; of the connectors nothing else is wanted that they name.
    """
    folder = KEPT / _FLINK_LIBRARIES
    if not folder.exists():
        with step(f"{_FLINK_LIBRARIES}, 310 MB"):
            _install(_FLINK_LIBRARIES, folder)
    own = sorted((folder / "pyflink" / "lib").glob("*.jar"))
    return [*own, *jars.resolve(*_FLINK_CONNECTORS)]


def _install(requirement: str, folder: Path) -> None:
    """Put a package into a folder of its own, whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".incoming-", dir=folder.parent) as incoming:
        place = Path(incoming) / "package"
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        _run([*pip, "--no-compile", "--target", str(place), requirement], f"cannot get {requirement}")
        place.rename(folder)


@cache
def _compiled_once(name: str, class_path: str) -> Path:
    source = _JAVA / f"{name}.java"
    digest = hashlib.sha256(source.read_bytes() + class_path.encode()).hexdigest()[:12]
    folder = KEPT / f"{name}-{digest}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".incoming-", dir=folder.parent) as incoming:
            classes = Path(incoming) / "classes"
            command = [_compiler(), "-nowarn", "-d", str(classes), "-cp", class_path, str(source)]
            _run(command, f"cannot compile {source.name}")
            classes.rename(folder)
    return folder


def _compiled(name: str, class_path: list[Path]) -> Path:
    return _compiled_once(name, ":".join(map(str, class_path)))


def _compiler() -> str:
    """Return the compiler beside the Java that runs."""
    beside = Path(java_program()).resolve().with_name("javac")
    found = str(beside) if beside.exists() else shutil.which("javac")
    if found is None:
        raise LocalServiceError("there is no Java compiler", hint="install a JDK, 17 or newer")
    return found


def _run(command: list[str], failure: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LocalServiceError(failure, f"{done.stdout}{done.stderr}".strip()[-2000:])
