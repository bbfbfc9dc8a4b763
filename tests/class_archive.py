"""Spark's classes as a driver has them loaded, kept in a file that the next JVM maps instead of reading jars.

A suite starts some sixty drivers, and a fourth of the processor time of each start goes into loading the same
classes. Java checks that an archive fits its own version and class path; one that does not is not used.

    python -m tests.class_archive    # makes the archive, if it is missing
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from functools import cache
from pathlib import Path

from airflow_provider_sinks.local import spark

_MAKE_SECONDS = 300.0


@cache
def options() -> str:
    """Return the option of a JVM that starts with Spark's own jars; empty if there is no archive."""
    return f'-XX:SharedArchiveFile="{_file()}"' if _file().exists() else ""


def make() -> None:
    """Run a small stream as drivers do, and keep the classes that it took; without them starts are slower."""
    from tests.faults.driver import submit

    _file().parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_file().parent) as folder:
        new = Path(folder) / "new.jsa"
        program = submit(
            "class archive",
            Path(folder),
            "--master",
            "local[2]",
            str(Path(__file__).with_name("usual_stream.py")),
            java=f'-XX:ArchiveClassesAtExit="{new}"',
        )
        code = program.wait(_MAKE_SECONDS)
        if code == 0 and new.exists():
            new.replace(_file())
        else:
            sys.stderr.write(f"no archive of Spark's classes (exit code {code}):\n{program.log[-4000:]}\n")


def _file() -> Path:
    jars = "\n".join(sorted(jar.name for jar in (spark.spark_home() / "jars").glob("*.jar")))
    digest = hashlib.sha256(f"{spark.spark_home()}\n{jars}".encode()).hexdigest()[:12]
    return Path(sys.prefix) / "class archives" / f"spark-{digest}.jsa"


if __name__ == "__main__" and not options():
    make()
