"""The real job without Airflow: a launch directory, spark-submit in its own session, and ways to break it."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from airflow_provider_sinks.core.connection.resolved import ResolvedConnections
from airflow_provider_sinks.core.launch.files import Launch, LaunchFiles
from airflow_provider_sinks.core.launch.status import SinkState, SinkStatus
from airflow_provider_sinks.core.progress.witness import Witness
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.local import spark
from airflow_provider_sinks.local.processes import Service, session_members
from tests import class_archive
from tests.faults.parts import Part, jvm_of, kill_one

ROOT = Path(__file__).parents[2]
APPLICATION = ROOT / "spark_jobs" / "sink_job.py"
LOG4J2_FILE = ROOT / "airflow_provider_sinks" / "hooks" / "log4j2.properties"
OWNER = "faults"
QUICK_START = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
"""For a JVM that lives for seconds: half the processor time of its start."""
PATIENCE = float(os.environ.get("FAULT_PATIENCE") or 1)
"""How many times as long is waited for a process, on a machine that others keep busy."""
_POLL_SECONDS = 0.05
START_SECONDS = 400.0
"""A driver of its own has got somewhere by then, on a slow machine too."""
_END_SECONDS = 300.0


class Process:
    """A running spark-submit.

    :param service: the started session.
    :param scratch: where Spark keeps temporary files; removed at the end.
    """

    def __init__(self, service: Service, scratch: Path) -> None:
        self.service = service
        self._scratch = scratch
        self._ended = False

    @property
    def log(self) -> str:
        """Everything that was printed."""
        return self.service.log.read_text(errors="replace") if self.service.log.exists() else ""

    @property
    def jvm(self) -> int:
        """The process of the driver's JVM."""
        return jvm_of(self.service.pid).pid

    def wait_until(self, condition: Callable[[], bool], timeout_seconds: float = START_SECONDS) -> None:
        """Return when ``condition()`` holds; raise with the end of the log when the process ends before."""
        self.service.wait_until(condition, timeout_seconds * PATIENCE)

    def wait(self, timeout_seconds: float = _END_SECONDS) -> int:
        """Return the exit code, once the whole session is over."""
        code = self.service.wait(timeout_seconds * PATIENCE)
        self._wait_for_orphans(timeout_seconds)
        self._clear()
        return code

    def kill(self, part: Part) -> bool:
        """SIGKILL a part, if one is at work now; say whether one was."""
        if part is Part.DRIVER:
            os.killpg(self.service.pid, signal.SIGKILL)  # the JVM and its Python at once
            self.service.kill()  # then Spark's daemon and its workers, which have a group of their own
            self._clear()
            return True
        return kill_one(self.service.pid, part)

    def signal(self, what: signal.Signals) -> None:
        """Send a signal to every process of the session, Spark's daemon and workers included."""
        for pid in session_members(self.service.pid):
            with contextlib.suppress(ProcessLookupError):  # Python workers come and go
                os.kill(pid, what)

    def end(self) -> None:
        """Kill what still runs; nothing, if it was seen to end: its number may be another's by now."""
        if not self._ended:
            self.kill(Part.DRIVER)

    def _clear(self) -> None:
        """Remove the temporary files of Spark, which a killed driver leaves behind."""
        self._ended = True
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _wait_for_orphans(self, timeout_seconds: float) -> None:
        """Wait until workers that outlived their JVM have ended by themselves, as they must."""
        deadline = time.monotonic() + timeout_seconds
        while session_members(self.service.pid):
            if time.monotonic() > deadline:
                raise self.service.failure("processes of the job outlive it")
            time.sleep(_POLL_SECONDS)


def submit(
    name: str,
    folder: Path,
    *arguments: str,
    conf: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
    java: str = "",
) -> Process:
    """Run spark-submit in a session of its own, small and quick to start.

    :param folder: for its log, and for everything that Spark may want to write.
    :param arguments: from ``--master`` to the arguments of the application.
    :param env: more environment variables.
    :param java: options of the JVM in place of the one that has it use the archive of classes.
    """
    scratch = Path(tempfile.mkdtemp())  # a short path: Spark makes Unix sockets in it
    logging = f"-Dlog4j2.configurationFile={LOG4J2_FILE.as_uri()}"
    archive = None if java else class_archive.taken()
    java = archive.java_option if archive else java
    options = f"{QUICK_START} -Djava.io.tmpdir={scratch} {logging} {java}"
    settings = {
        "spark.driver.extraJavaOptions": options,
        "spark.driver.memory": "700m",
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.shuffle.partitions": "2",
        **(conf or {}),
    }
    given = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    environment = {
        **spark.submit_environment(),
        "PYTHONPATH": str(ROOT),
        "TMPDIR": str(scratch),
        "SPARK_HOME": str(_private_home() if any(map(_has_workers, arguments)) else spark.spark_home()),
        "PYTHONDONTWRITEBYTECODE": "",  # nothing, for Python: a second start need not compile again
        "PYTHONPYCACHEPREFIX": str(_private_home() / "compiled"),
        **(archive.variables if archive else {}),
        **(env or {}),
    }
    service = Service(name, spark.submit_command(*given, *arguments), folder, env=environment)
    service.start()
    return Process(service, scratch)


def _has_workers(argument: str) -> bool:
    return argument.startswith("local-cluster")


@cache
def _private_home() -> Path:
    """Return Spark's home under another name: executors of a local-cluster write into its folder ``work``."""
    home = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    for entry in spark.spark_home().iterdir():
        if entry.name != "work":
            (home / entry.name).symlink_to(entry)
    return home


class Driver(Process):
    """One launch of a sink."""

    def __init__(self, process: Process, files: LaunchFiles) -> None:
        super().__init__(process.service, process._scratch)
        self.files = files

    @property
    def status(self) -> SinkStatus | None:
        """The newest status, or ``None`` before the first."""
        text = self.files.read_status()
        return SinkStatus.from_json(text) if text else None

    def in_state(self, state: SinkState) -> bool:
        """Whether the launch has come as far as a state."""
        status = self.status
        return status is not None and (status.state is state or status.state.is_final)

    @property
    def is_over(self) -> bool:
        """Whether the process itself has ended."""
        return not self.service.running

    def wait_epochs(self, count: int, ends: Mapping[int, int] | None = None) -> None:
        """Return when so many epochs are whole, or nothing is left to read.

        :param ends: of the source; ``None`` where there will be rows enough.
        :raises LocalServiceError: when the job ends before.
        """
        self.wait_until(lambda: self.in_state(SinkState.RUNNING))
        begun = self.status
        first = begun.epoch if begun else 0
        self.wait_until(
            lambda: (
                ((now := self.status) is not None and now.epoch >= first + count)
                or (ends is not None and self.has_passed(ends))
            )
        )

    def has_passed(self, ends: Mapping[int, int]) -> bool:
        """Whether everything up to some source offsets is committed."""
        status = self.status
        return status is not None and all(status.positions.get(p, 0) >= end for p, end in ends.items())

    def stop(self) -> int:
        """Ask it to end between two epochs, and return its exit code."""
        self.files.ask_to_stop()
        return self.wait()


@dataclass
class SinkUnderTest:
    """A sink and what Airflow would keep for it between its launches.

    :param spec: the sink, as ``SinkSpec.parse`` takes it.
    :param folder: for launches and checkpoints.
    :param remembered: the witness before the first launch.
    """

    spec: Mapping[str, object]
    connections: ResolvedConnections
    folder: Path
    master: str = "local[2,4]"
    conf: Mapping[str, str] = field(default_factory=dict)
    launches: list[Driver] = field(default_factory=list)
    remembered: Witness | None = None

    @property
    def parsed(self) -> SinkSpec:
        """The sink's spec."""
        return SinkSpec.parse(self.spec)

    @property
    def checkpoints(self) -> Path:
        """The root of the checkpoints."""
        return self.folder / "checkpoints"

    def prepare(self, accept: str | None = None) -> LaunchFiles:
        """Write the next launch, with the newest witness of the launches before, and start nothing."""
        number = len(self.launches) + 1
        files = LaunchFiles(self.folder / f"launch-{number}")
        spec = json.loads(self.parsed.to_json())
        launch = Launch(spec, number, OWNER, str(self.checkpoints), self._witness(), accept)
        files.write(launch, self.connections.to_json())
        return files

    def start(self, accept: str | None = None, conf: Mapping[str, str] | None = None) -> Driver:
        """Launch the sink once more, in a driver of its own.

        :param conf: Spark settings of this launch alone.
        """
        files = self.prepare(accept)
        arguments = ["--master", self.master, str(APPLICATION), "--launch", str(files.directory)]
        driver = Driver(
            submit("driver", files.directory, *arguments, conf={**self.conf, **(conf or {})}), files
        )
        self.launches.append(driver)
        return driver

    def _witness(self) -> Mapping[str, object] | None:
        told = [driver.status for driver in reversed(self.launches)]
        witnesses = [*(status.witness() for status in told if status), self.remembered]
        newest = next((witness for witness in witnesses if witness is not None), None)
        found: Mapping[str, object] | None = json.loads(newest.to_json()) if newest else None
        return found
