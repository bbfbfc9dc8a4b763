"""A real YARN for tests of cluster mode: one resource manager and one node manager, on free ports.

    with YarnCluster.start(folder) as yarn:
        subprocess.run(submit_command("--master", "yarn", ...), env={**os.environ, **yarn.environment})

It has no HDFS: its file system is this machine's, so that a staging folder is a folder.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Self
from xml.sax.saxutils import escape

import httpx

from airflow_provider_sinks.local import jars
from airflow_provider_sinks.local.ports import LOCALHOST, free_port
from airflow_provider_sinks.local.processes import Service, end_session, java_program, session_members
from airflow_provider_sinks.local.spark import spark_home

_READY_SECONDS = 180.0
_GRACE_SECONDS = 3.0
_PACKAGE = "org.apache.hadoop.yarn.server"
_RESOURCE_MANAGER = f"{_PACKAGE}.resourcemanager.ResourceManager"
_NODE_MANAGER = f"{_PACKAGE}.nodemanager.NodeManager"
_JAVA_OPTIONS = (
    "-Xmx300m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
)
_LOGGING = """\
log4j.rootLogger=WARN,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %c{1}: %m%n
"""
_QUEUES = {
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": "100",
    # By default a tenth of the memory may be drivers, which is none on a small machine.
    "yarn.scheduler.capacity.maximum-am-resource-percent": "0.8",
}


class YarnCluster:
    """One resource manager and one node manager, and the containers that it runs.

    :param folder: for configuration, logs and the containers' own folders.
    :param memory_mb: what the node offers to containers.
    """

    def __init__(self, folder: Path, memory_mb: int) -> None:
        self.folder = folder
        self._conf = folder / "conf"
        self._web_port = free_port()
        self._memory_mb = memory_mb
        self._manager = self._service("yarn resource manager", _RESOURCE_MANAGER)
        self._node = self._service("yarn node manager", _NODE_MANAGER)

    @classmethod
    def start(cls, folder: Path, *, memory_mb: int = 8192) -> Self:
        """Start both and return when the node is registered.

        :param folder: must be empty or missing, and have no space in its name: Spark's YARN client does not
            find its own staging folder then.
        :param memory_mb: what the node offers to containers; nobody measures whether they keep to it.
        """
        cluster = cls(folder, memory_mb)
        cluster._configure()
        try:
            cluster._start()
        except BaseException:
            cluster.stop()
            raise
        return cluster

    @property
    def url(self) -> str:
        """Where the resource manager's REST API and pages are."""
        return f"http://{LOCALHOST}:{self._web_port}"

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which ``spark-submit`` finds this cluster."""
        return {"HADOOP_CONF_DIR": str(self._conf)}

    @property
    def spark_settings(self) -> dict[str, str]:
        """What Spark must be told: its jars are on the node already, and everything stays on this machine."""
        return {
            "spark.yarn.jars": f"local:{self._link('jars', spark_home() / 'jars')}/*",
            "spark.yarn.stagingDir": (self.folder / "staging").as_uri(),
            "spark.yarn.appMasterEnv.SPARK_LOCAL_IP": LOCALHOST,
            "spark.executorEnv.SPARK_LOCAL_IP": LOCALHOST,
            "spark.pyspark.python": str(self._link("venv", Path(sys.prefix)) / "bin" / "python"),
        }

    def _link(self, name: str, target: Path) -> Path:
        """Return another path to a folder: Spark's YARN client takes none with a space in it."""
        link = self.folder / name
        if not link.is_symlink():
            link.symlink_to(target, target_is_directory=True)
        return link

    @property
    def logs(self) -> Path:
        """Where containers log: ``<application>/<container>/{stdout,stderr}``."""
        return self.folder / "container-logs"

    def stop(self) -> None:
        """End the containers, the node manager and the resource manager."""
        containers = self.container_sessions()
        self._node.stop(_GRACE_SECONDS)
        self._manager.stop(_GRACE_SECONDS)
        for session in {*containers, *self.container_sessions()}:
            end_session(session)

    def container_sessions(self) -> set[int]:
        """Return the sessions of the containers that run now; each container has its own."""
        sessions = set()
        for file in (self.folder / "local" / "nmPrivate").glob("*/*/*.pid"):
            with contextlib.suppress(OSError, ValueError):  # the node manager tidies up while we look
                sessions.add(int(file.read_text()))
        return {session for session in sessions if session_members(session)}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self) -> None:
        self._manager.start()
        self._node.start()
        self._manager.wait_until(self._has_node, _READY_SECONDS)

    def _has_node(self) -> bool:
        if not self._node.running:
            raise self._node.failure("the node manager ended")
        try:
            answer = httpx.get(f"{self.url}/ws/v1/cluster/nodes", params={"states": "RUNNING"}, timeout=5)
            return answer.status_code == httpx.codes.OK and bool(answer.json()["nodes"])
        except httpx.HTTPError:
            return False

    def _service(self, name: str, main: str) -> Service:
        class_path = ":".join([str(self._conf), *map(str, jars.resolve(*jars.YARN))])
        # The node manager starts Java in containers by JAVA_HOME alone.
        home = Path(java_program()).resolve().parents[1]
        environment = {**os.environ, **self.environment, "JAVA_HOME": str(home)}
        command = [java_program(), *_JAVA_OPTIONS, "-cp", class_path, main]
        return Service(name, command, self.folder, env=environment)

    def _configure(self) -> None:
        self._conf.mkdir(parents=True)
        (self._conf / "log4j.properties").write_text(_LOGGING)
        _write_xml(self._conf / "core-site.xml", {"fs.defaultFS": "file:///"})
        _write_xml(self._conf / "capacity-scheduler.xml", _QUEUES)
        _write_xml(self._conf / "yarn-site.xml", {**self._addresses(), **self._node_settings()})

    def _addresses(self) -> dict[str, str]:
        names = ("address", "scheduler.address", "resource-tracker.address", "admin.address")
        manager = {f"yarn.resourcemanager.{name}": f"{LOCALHOST}:{free_port()}" for name in names}
        node = {
            f"yarn.nodemanager.{name}": f"{LOCALHOST}:{free_port()}"
            for name in ("address", "localizer.address", "webapp.address")
        }
        return {
            **manager,
            **node,
            "yarn.resourcemanager.hostname": LOCALHOST,
            "yarn.resourcemanager.bind-host": LOCALHOST,
            "yarn.nodemanager.hostname": LOCALHOST,
            "yarn.nodemanager.bind-host": LOCALHOST,
            "yarn.resourcemanager.webapp.address": f"{LOCALHOST}:{self._web_port}",
        }

    def _node_settings(self) -> dict[str, str]:
        return {
            "yarn.nodemanager.local-dirs": str(self.folder / "local"),
            "yarn.nodemanager.log-dirs": str(self.logs),
            "yarn.nodemanager.resource.memory-mb": str(self._memory_mb),
            "yarn.nodemanager.resource.cpu-vcores": "32",
            "yarn.scheduler.minimum-allocation-mb": "128",
            "yarn.nodemanager.pmem-check-enabled": "false",
            "yarn.nodemanager.vmem-check-enabled": "false",
            "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",
            # What a large cluster does once a second is most of the waiting on a small one.
            "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "100",
            "yarn.nodemanager.sleep-delay-before-sigkill.ms": "250",
            "yarn.nodemanager.process-kill-wait.ms": "2000",
        }


def _write_xml(path: Path, settings: Mapping[str, str]) -> None:
    lines = [
        f"<property><name>{name}</name><value>{escape(value)}</value></property>"
        for name, value in settings.items()
    ]
    path.write_text("\n".join(["<configuration>", *lines, "</configuration>", ""]))
