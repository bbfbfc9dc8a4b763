"""Reads the DAG files of a folder, each in a fork of this process, which has imported Airflow once.

``python -m airflow_provider_sinks.checker.server FOLDER PARSE_SECONDS HANG_SECONDS`` prints the facts of one
file per line. A file that hangs is ended and reported; one that brings its process down does not bring down
the others. Where a file stood meanwhile is told by Python's fault handler, which can also look at code that
does not come back from C.
"""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import multiprocessing
import os
import re
import signal
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from airflow.dag_processing.importers import PythonDagImporter

from airflow_provider_sinks.checker.facts import FILE_FACTS, End, FileFacts, Limits, Place
from airflow_provider_sinks.checker.reader import read_file
from airflow_provider_sinks.checker.recorder import Recorder, is_inside

_FORK = multiprocessing.get_context("fork")
_LOOK_AGAIN_SECONDS = 0.5
_FRAME = re.compile(r'^  File "(.*)", line (\d+) in ', re.MULTILINE)


def main(folder: Path, limits: Limits) -> None:
    """Print the facts of all files that Airflow would read."""
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what DAG files print is not ours
    logging.disable(logging.CRITICAL)
    sys.path.insert(0, str(folder))
    with tempfile.TemporaryDirectory(prefix="sinks-check-") as scratch, output:
        for index, file in enumerate(dag_files(folder)):
            reading = _Reading(file, folder, limits, Path(scratch) / str(index))
            output.write(FILE_FACTS.dump_json(reading.facts()).decode() + "\n")
            output.flush()


def dag_files(folder: Path) -> list[Path]:
    """Return the Python files that Airflow would read: with its safe mode, and without what it ignores."""
    found = (Path(file) for file in PythonDagImporter().list_dag_files(folder))
    return sorted(file for file in found if file.suffix == ".py" and not _is_foreign(file, folder))


def _is_foreign(file: Path, folder: Path) -> bool:
    parts = file.relative_to(folder).parts
    return "site-packages" in parts or any(part.startswith(".") for part in parts)


@dataclass(frozen=True)
class _Reading:
    """The reading of one file by a process of its own.

    :param scratch: the start of the names of files that the process leaves behind.
    """

    file: Path
    folder: Path
    limits: Limits
    scratch: Path

    def facts(self) -> FileFacts:
        """Read the file, and end what does not come to an end."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # no threads run here
            process = _FORK.Process(target=self._read)
            process.start()
        try:
            process.join(self.limits.hang_seconds + _LOOK_AGAIN_SECONDS)
            hung = process.is_alive()
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid or 0, signal.SIGKILL)  # and what the file has started
            process.join()
        if not hung and self._answer.exists():
            facts = FILE_FACTS.validate_json(self._answer.read_bytes())
            return replace(facts, stood_at=next(self._stops(), None))
        end = End.HUNG if hung else End.DIED
        return FileFacts(str(self.file), end, stood_at=next(iter([*self._stops()][::-1]), None))

    @property
    def _answer(self) -> Path:
        return self.scratch.with_suffix(".json")

    @property
    def _trace(self) -> Path:
        return self.scratch.with_suffix(".trace")

    def _read(self) -> None:
        os.setsid()
        recorder = Recorder(self.folder, self.file)
        with self._trace.open("w") as trace:
            faulthandler.enable(trace)
            faulthandler.dump_traceback_later(self.limits.parse_seconds, repeat=True, file=trace)
            recorder.install()
            facts = read_file(self.file, recorder)
            faulthandler.cancel_dump_traceback_later()
        partial = self.scratch.with_suffix(".part")
        partial.write_bytes(FILE_FACTS.dump_json(facts))
        partial.replace(self._answer)
        os._exit(0)  # threads of the file may still run

    def _stops(self) -> Iterator[Place]:
        """Return the lines of the folder at which the file was seen, in the order of the looks."""
        text = self._trace.read_text(encoding="utf-8", errors="replace") if self._trace.exists() else ""
        for look in re.split(r"^(?:Timeout|Fatal Python error)", text, flags=re.MULTILINE)[1:]:
            frames = [Place(file, int(line)) for file, line in _FRAME.findall(look)]
            yield from [place for place in frames if is_inside(str(self.folder), place.file)][:1]


if __name__ == "__main__":
    main(Path(sys.argv[1]), Limits(float(sys.argv[2]), float(sys.argv[3])))
