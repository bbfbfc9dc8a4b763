"""The files of a launch whose driver is on a cluster: told in its container, heard of at a URI.

What to run comes with the container (``spark-submit --files``). Status and ``stop`` stand at a URI that both
sides can reach, written here through Hadoop's file systems with the settings that Spark has for them.

A status that cannot be written does not end a sink: what is committed stands in the target.
"""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkContext

from airflow_provider_sinks.core.launch.files import STATUS_NAME, STOP_NAME, LaunchFiles
from airflow_provider_sinks.streaming.driver_log import say

_PAUSE_SECONDS = 1.0
"""Between two writes of one state, and between two looks for ``stop``: each is a request to a store."""


class HadoopFolder:
    """A folder behind any URI that Hadoop knows.

    :param uri: such as ``s3a://bucket/sinks/orders/launches/7``.
    """

    def __init__(self, uri: str) -> None:
        SparkContext._ensure_initialized()  # noqa: SLF001  the JVM is there before Spark's session is
        jvm: Any = SparkContext._jvm  # noqa: SLF001  the way to Hadoop's file systems
        self._jvm = jvm
        self._gateway: Any = SparkContext._gateway  # noqa: SLF001  likewise
        self._conf = jvm.org.apache.spark.deploy.SparkHadoopUtil.get().conf()
        self._uri = uri

    def write(self, name: str, text: str) -> None:
        """Replace a file as a whole: written beside, then renamed over it."""
        target, beside = self._path(name), self._path(f".{name}.new")
        context = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(target.toUri(), self._conf)
        stream = target.getFileSystem(self._conf).create(beside, True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()
        context.rename(beside, target, self._overwrite())

    def has(self, name: str) -> bool:
        """Return whether there is a file of this name."""
        path = self._path(name)
        return bool(path.getFileSystem(self._conf).exists(path))

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self._uri}/{name}")

    def _overwrite(self) -> Any:
        kind = getattr(self._jvm.org.apache.hadoop.fs, "Options$Rename")
        options = self._gateway.new_array(kind, 1)
        options[0] = kind.valueOf("OVERWRITE")
        return options


@dataclass
class _Written:
    """What was written and seen so far, under its lock."""

    wanted: str = ""
    written: str = ""
    written_at: float = 0.0
    looked_at: float = 0.0
    stop: bool = False
    complained: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True)
class ClusterFiles(LaunchFiles):
    """The files of one launch, the container's and the URI's.

    :param directory: the container's working directory, with what to run.
    :param remote: where status and ``stop`` stand.
    """

    remote: HadoopFolder = field(kw_only=True)
    _state: _Written = field(default_factory=_Written, kw_only=True, repr=False)

    @classmethod
    def of(cls, files: LaunchFiles, uri: str) -> Self:
        """Return the files of a launch that is heard of at a URI."""
        return cls(Path(files.directory), remote=HadoopFolder(uri.rstrip("/")))

    def write_status(self, text: str) -> None:
        """Replace the status: at once when the state changed, else now and then."""
        with self._state.lock:
            self._state.wanted = text
            self._write_if_due()

    def end_wanted(self) -> str | None:
        """Return why the driver shall end; looks now and then, and writes what was held back."""
        with self._state.lock:
            self._write_if_due()
            if not self._state.stop and _elapsed(self._state.looked_at) >= _PAUSE_SECONDS:
                self._state.looked_at = time.monotonic()
                self._state.stop = self._has_stop()
            return "asked to stop" if self._state.stop else None

    def _write_if_due(self) -> None:
        state = self._state
        if state.wanted == state.written:
            return
        if _name(state.wanted) == _name(state.written) and _elapsed(state.written_at) < _PAUSE_SECONDS:
            return
        try:
            self.remote.write(STATUS_NAME, state.wanted)
            state.written, state.complained = state.wanted, False
        except Py4JError as error:
            self._complain("the status cannot be written", error)
        state.written_at = time.monotonic()

    def _has_stop(self) -> bool:
        try:
            return self.remote.has(STOP_NAME)
        except Py4JError as error:
            self._complain("whether to stop cannot be seen", error)
            return False

    def _complain(self, what: str, error: Exception) -> None:
        """Say it once, until it works again."""
        if not self._state.complained:
            self._state.complained = True
            say(f"{what}: {str(error).splitlines()[0]}")


def _name(text: str) -> str:
    """Return the state that a status document tells."""
    return str(json.loads(text)["state"]) if text else ""


def _elapsed(since: float) -> float:
    return time.monotonic() - since
