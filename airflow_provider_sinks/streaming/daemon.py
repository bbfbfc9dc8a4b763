"""The Python daemon of the executors (``spark.python.daemon.module``): Spark's own, with three changes.

**The end of the input must be proved.** When a JVM or an executor is killed, its Python worker reads a clean
end of stream, and Arrow accepts a stream that is cut between two messages. A writer that took this for the
end of its rows would commit a part of an epoch. Arrow writers end a stream with a mark of eight bytes; the
stream that this daemon hands to Python functions raises :class:`CutInputError` when the input ends without
it. Writers ask :func:`input_is_proved` before they take a row, and write nothing under another daemon.

**Zip files are read once.** For each task Spark calls ``importlib.invalidate_caches()``, which makes Python
read the directory of every zip file on ``sys.path`` again (``pyspark.zip`` has a thousand entries). A zip
that a worker has opened does not change while the worker lives, so the second reading is left out.

**A JVM that hung up is no error of the worker.** It has ended the task, or is over itself, and nobody hears
what a worker still has to say; Spark's daemon would print a traceback about a broken pipe.

Heavy modules are imported here, before the fork, so that each worker finds them loaded. No client is created
before the fork: librdkafka's threads would not live on in the child.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import zipimport
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
from pyspark import daemon
from pyspark.sql.pandas import serializers

from airflow_provider_sinks.core.launch.files import LaunchFiles
from airflow_provider_sinks.core.spec.spark_conf import DAEMON_MODULE, PRELOADED

MODULE = DAEMON_MODULE
_worker_main = daemon.worker_main
_CONTINUATION = b"\xff\xff\xff\xff"
_NO_LENGTH = b"\x00\x00\x00\x00"


class CutInputError(EOFError):
    """The input of a Python function ended before its producer said that it was complete."""


class WatchedStream:
    """A readable stream that remembers how it ended.

    :param stream: the stream that Spark feeds.
    """

    closed = False

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._last_two = (b"", b"")

    def read(self, size: int) -> bytes:
        """Return ``size`` bytes, or fewer at the end of the stream. Called by Arrow alone."""
        data = self._stream.read(size)
        self._last_two = (self._last_two[1], data)
        return data

    def readable(self) -> bool:
        """Say that the stream can be read."""
        return True

    @property
    def is_complete(self) -> bool:
        """Whether the last thing read was Arrow's mark for the end of a stream.

        Arrow reads it as two words of four bytes each. Looking at the reads and not at the last eight bytes
        matters: the body of a batch may end with the same bytes.
        """
        return self._last_two == (_CONTINUATION, _NO_LENGTH)


def load_proved_stream(_self: Any, stream: IO[bytes]) -> Iterator[pa.RecordBatch]:
    """Yield the batches of an Arrow stream; replaces ``ArrowStreamSerializer.load_stream`` in workers.

    :raises CutInputError: after the last batch, when the stream ended without its mark.
    """
    watched = WatchedStream(stream)
    yield from pa.ipc.open_stream(watched)
    if not watched.is_complete:
        raise CutInputError("the input of this task was cut: its executor or driver is gone")


def serve(infile: IO[bytes], outfile: IO[bytes]) -> None:
    """Run the tasks of one connection as Spark does, and say nothing to a JVM that hung up.

    Replaces ``worker_main`` in Spark's daemon, which flushes once more.
    """
    try:
        _worker_main(infile, outfile)
    finally:
        try:
            outfile.flush()
        except (BrokenPipeError, ConnectionResetError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, outfile.fileno())
            os.close(nowhere)


def input_is_proved() -> bool:
    """Whether this process hands only proved input to Python functions."""
    return serializers.ArrowStreamSerializer.load_stream is load_proved_stream


def install() -> None:
    """Change this process as the module's docstring says. Called once, before the first fork."""
    serializers.ArrowStreamSerializer.load_stream = load_proved_stream  # type: ignore[method-assign]
    daemon.worker_main = serve
    zipimport.zipimporter.invalidate_caches = lambda _self: None  # type: ignore[method-assign, assignment]


def forget_connections() -> None:
    """Delete the connections that YARN put beside this executor: it gives the driver's files to everybody.

    Nowhere else: only a container of YARN has a working directory that is surely ours.
    """
    if "CONTAINER_ID" in os.environ and LaunchFiles(Path()).launch.exists():
        LaunchFiles(Path()).forget_connections()


def main() -> None:
    """Run Spark's daemon with these changes."""
    from airflow_provider_sinks.streaming import writer  # noqa: F401  loads what each worker needs

    forget_connections()
    if module := os.environ.get(PRELOADED):
        with contextlib.suppress(ImportError):  # a task that needs it says so, with the name of the module
            importlib.import_module(module)
    install()
    gc.freeze()
    daemon.manager()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    # As ``python -m`` this file is ``__main__``; writers must find the same module under its own name.
    importlib.import_module(MODULE).main()
