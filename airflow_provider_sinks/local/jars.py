"""Jars by Maven coordinates, resolved in pure Python and kept where Maven keeps them.

Plain ``spark-submit --packages`` needs every artifact at Spark's own version. The token provider is not
everywhere to be had at that version, so it is named beside the Kafka source and resolved here.
"""

from __future__ import annotations

import contextlib
import re
import tarfile
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from functools import cache
from pathlib import Path

from jgo.config import GlobalSettings
from jgo.constants import MAVEN_CENTRAL_URL
from jgo.maven import Artifact, MavenContext
from jgo.maven._resolver import PythonResolver
from jgo.parse import Coordinate

from airflow_provider_sinks.local.processes import LocalServiceError
from airflow_provider_sinks.local.progress import Line, step

KAFKA_VERSION = "4.1.2"
SPARK_VERSION = "4.1.1"
HADOOP_VERSION = "3.4.2"
KAFKA_BROKER = (
    f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}",
    "org.apache.logging.log4j:log4j-slf4j-impl:2.25.3",
)
SPARK_KAFKA = (
    f"org.apache.spark:spark-sql-kafka-0-10_2.13:{SPARK_VERSION}",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    f"org.apache.spark:spark-avro_2.13:{SPARK_VERSION}",
)
"""What Spark needs for Kafka, and for Avro in it."""
APICURIO_VERSION = "3.0.9"
"""The newest that Java 17 runs; 3.3 needs Java 21."""
SCHEMA_REGISTRY = f"io.apicurio:apicurio-registry-app:{APICURIO_VERSION}"
JAVA_SERDES = (
    "io.apicurio:apicurio-registry-avro-serde-kafka:3.1.7",
    "io.apicurio:apicurio-registry-jsonschema-serde-kafka:3.1.7",
    "com.google.protobuf:protobuf-java-util:4.33.4",
)
"""What producers and consumers in Java write and read by a registry."""
SPARK_JDBC = "org.postgresql:postgresql:42.7.14"
"""What Spark needs for format ``jdbc``."""
SPARK_ICEBERG = ("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0", SPARK_JDBC)
"""Sinks need none of these: it is what others read and administer Iceberg tables with."""
SPARK_DELTA = ("io.delta:delta-spark_4.1_2.13:4.4.0",)
"""The same for Delta tables."""
OBJECT_STORE = ("org.gaul:s3proxy:4.1.0", "com.fasterxml.jackson.core:jackson-annotations:2.21")
"""A server of S3. Of the second it would come with an older one than a part of it needs."""
DEBEZIUM_JDBC = "io.debezium:debezium-connector-jdbc:3.4.0.Final"
"""A plugin of Kafka Connect, that reads topics into a database."""
YARN = tuple(
    f"org.apache.hadoop:{artifact}:{HADOOP_VERSION}"
    for artifact in (
        "hadoop-yarn-server-resourcemanager",
        "hadoop-yarn-server-nodemanager",
        "hadoop-yarn-server-timelineservice",
        "hadoop-common",
        "hadoop-hdfs-client",
    )
)
"""Not hadoop-client-minicluster, which has all of it in one jar: there, JAXB stands under two names, and the
manager's REST API cannot say what an application is."""
_DOWNLOADS_AT_ONCE = 8
_HTTP_TIMEOUT_SECONDS = 60


@cache
def resolve(*coordinates: str, beside: Path | None = None) -> tuple[Path, ...]:
    """Return the jars of some coordinates and of all that they need, downloaded when they are missing.

    :param beside: a folder of jars that will be on the same class path; what it has is left out, because
        a second copy would shadow it.
    """
    there = {_artifact_id(path) for path in beside.glob("*.jar")} if beside else set()
    artifacts = [item for item in _artifacts(coordinates) if _artifact_id(_path(item)) not in there]
    missing = [artifact for artifact in artifacts if not _path(artifact).exists()]
    if missing:
        with step(f"{len(missing)} jars for {coordinates[0]}") as line:
            _download(missing, line)
    return tuple(map(_path, artifacts))


@cache
def unpacked(coordinate: str, classifier: str) -> Path:
    """Return the folder with what an archive (``tar.gz``) holds, beside it; made where it is missing.

    :param coordinate: ``group:artifact:version``.
    """
    group, name, version = coordinate.split(":")
    context = _context(GlobalSettings.load().repo_cache, _WholeFiles())
    archive = context.project(group, name).at_version(version).artifact(classifier, "tar.gz")
    folder = _path(archive).with_suffix("").with_suffix("")
    if folder.is_dir():
        return folder
    if not _path(archive).exists():
        with step(f"{name} {version}") as line:
            _download([archive], line)
    with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=folder.parent) as unpacking:
        with tarfile.open(_path(archive)) as packed:
            packed.extractall(unpacking, filter="data")
        with contextlib.suppress(OSError):  # another run was faster
            Path(unpacking).rename(folder)
        Path(unpacking).mkdir(exist_ok=True)  # what is left for the context to remove
    return folder


def _artifact_id(jar: Path) -> str:
    """Return ``kafka-clients`` for ``kafka-clients-3.9.1.jar``."""
    return re.sub(r"-\d.*$", "", jar.stem)


class _WholeFiles(PythonResolver):
    """Puts a file into the shared cache only when it is whole.

    An interrupted run must not leave half a jar behind, and two runs at once must not meet in one file.
    """

    def download(self, artifact: Artifact) -> Path:
        cache_folder = artifact.context.repo_cache
        cache_folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".incoming-", dir=cache_folder) as incoming:
            context = _context(Path(incoming), PythonResolver())
            project = context.project(artifact.groupId, artifact.artifactId)
            copy = project.at_version(artifact.version).artifact(artifact.classifier, artifact.packaging)
            target = _path(artifact)
            target.parent.mkdir(parents=True, exist_ok=True)
            copy.resolve().replace(target)
        return target


def _context(cache_folder: Path, resolver: PythonResolver) -> MavenContext:
    repositories = {"central": MAVEN_CENTRAL_URL, **GlobalSettings.load().repositories}
    return MavenContext(resolver, cache_folder, remote_repos=repositories, timeout=_HTTP_TIMEOUT_SECONDS)


def _artifacts(coordinates: Iterable[str]) -> list[Artifact]:
    context = _context(GlobalSettings.load().repo_cache, _WholeFiles())
    wanted = [
        # raw: as Maven does it. Otherwise the versions that log4j's own build manages reach the broker.
        context.create_dependency(replace(Coordinate.parse(text), scope="compile", raw=True))
        for text in coordinates
    ]
    try:
        named, needed = context.resolver.resolve(wanted)
    except Exception as error:
        raise _failure(", ".join(coordinates), error) from error
    return [item.artifact for item in (*named, *needed) if item.scope in {"compile", "runtime"}]


def _download(artifacts: list[Artifact], line: Line) -> None:
    with ThreadPoolExecutor(_DOWNLOADS_AT_ONCE) as pool:
        running = {pool.submit(artifact.resolve): artifact for artifact in artifacts}
        for count, done in enumerate(as_completed(running), start=1):
            if (error := done.exception()) is not None:
                pool.shutdown(cancel_futures=True)
                raise _failure(str(running[done]), error) from error
            line.say(f"{count} of {len(running)}: {_path(running[done]).name}")


def _path(artifact: Artifact) -> Path:
    return Path(artifact.context.repo_cache, artifact.component.path_prefix, artifact.cached_filename)


def _failure(what: str, error: BaseException) -> LocalServiceError:
    return LocalServiceError(
        f"cannot get {what}",
        f"{type(error).__name__}: {error}",
        "check that this machine reaches its Maven repository, then run the same command again",
    )
