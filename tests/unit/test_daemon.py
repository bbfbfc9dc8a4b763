"""What our daemon changes of Spark's: a worker whose JVM is gone ends without a word."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from io import BytesIO
from typing import IO

import pytest
from pyspark import daemon as sparks

from airflow_provider_sinks.streaming import daemon

pytestmark = [  # Spark leaves a worker's files to the end of its process
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def hung_up(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """A worker's end of a connection on which it has something to say, and nobody listens any more."""
    worker, jvm = socket.socketpair()
    jvm.sendall(b"a task")
    jvm.close()

    def answer(_infile: IO[bytes], outfile: IO[bytes]) -> None:
        outfile.write(b"a result")

    monkeypatch.setattr(sparks, "worker_main", answer)
    monkeypatch.setattr(daemon, "_worker_main", answer)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    with worker:
        yield worker


def test_sparks_own_daemon_prints_a_traceback(
    hung_up: socket.socket, capfd: pytest.CaptureFixture[str]
) -> None:
    sparks.worker(hung_up, True)  # type: ignore[no-untyped-call]

    assert "BrokenPipeError" in capfd.readouterr().err


def test_ours_does_not(
    hung_up: socket.socket, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sparks, "worker_main", daemon.serve)

    code = sparks.worker(hung_up, True)  # type: ignore[no-untyped-call]

    assert code == 0
    assert capfd.readouterr().err == ""


def test_what_a_task_raises_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("wrong")

    monkeypatch.setattr(daemon, "_worker_main", fail)
    out = BytesIO()

    with pytest.raises(RuntimeError, match="wrong"):
        daemon.serve(out, out)
