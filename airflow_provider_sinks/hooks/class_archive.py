"""Spark's classes as a driver has them loaded, in a file that later drivers map instead of reading jars.

Two fifths of the processor time of Spark's start go into loading the same classes. ``airflow sinks
class-archive`` writes the file once for a Spark and its Java; each launch whose driver runs on this machine
then takes it. Java compares its version and the class path, and does without an archive that does not fit;
but one that is cut off, which still looks well, ends it. So the name of a file says how long it is.

Java neither writes nor takes one where a folder on the class path has files, and Spark puts its folder of
settings there. So a driver that takes an archive is told of another folder, that is never there, and by
``--properties-file`` of the settings themselves.

The file is written by a program that does nothing else. Java ends a process that cannot write one as failed,
and how the driver of a sink ends must mean something.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import airflow_provider_sinks
from airflow_provider_sinks.core.errors import ConfigurationError, JobFailedError, Problem

_FOLDER_VARIABLE = "SPARK_CONF_DIR"
STREAM = Path(airflow_provider_sinks.__file__).parent / "streaming" / "usual_stream.py"
_OPTIONS = ("SharedArchiveFile", "ArchiveClassesAtExit", "-Xshare")
_QUIET = "-Xlog:cds*=off"
_DEFAULTS = "spark-defaults.conf"
_MAKE_SECONDS = 600.0
_LAST_LINES = 15


@dataclass(frozen=True)
class TakenArchive:
    """How a driver is started that takes an archive.

    :param java_option: of its JVM.
    :param variables: of the environment of ``spark-submit``.
    :param properties_file: for its argument of this name: the settings that it does not find any more.
    """

    java_option: str
    variables: Mapping[str, str]
    properties_file: str | None


@dataclass(frozen=True)
class ClassArchive:
    """The archive of one Spark and its Java on this machine.

    :param binary: the ``spark-submit`` that takes it.
    :param folder: where it is, or will be.
    :param digest: of the Spark and the Java.
    :param settings: the folder of Spark's settings.
    """

    binary: Path
    folder: Path
    digest: str
    settings: Path

    @classmethod
    def of(cls, binary: str, environment: Mapping[str, str]) -> ClassArchive | None:
        """Return it, whether it is there or not; ``None`` where there is no such Spark, or no place for it.

        :param binary: the name of the command that submits, or its path.
        :param environment: what the command gets.
        """
        found = shutil.which(binary, path=environment.get("PATH"))
        home = environment.get("HOME")
        caches = environment.get("XDG_CACHE_HOME") or (home and f"{home}/.cache")
        if found is None or not caches:
            return None
        try:
            parts = "\n".join(_parts(Path(found), environment))
        except OSError:
            return None
        digest = hashlib.sha256(parts.encode()).hexdigest()[:16]
        named = environment.get(_FOLDER_VARIABLE)
        settings = Path(named) if named else _home(Path(found), environment) / "conf"
        return cls(Path(found), Path(caches) / "airflow-provider-sinks", digest, settings)

    @property
    def file(self) -> Path | None:
        """The whole file, where it is there and nobody but this user, or root, may write it."""
        found = (file for file in self._files() if file == self._named(file) and _is_ours(file))
        return next(found, None)

    @property
    def held_up_by(self) -> tuple[str, ...]:
        """The names of those of Spark's settings that only their folder brings; empty: it can be taken."""
        try:
            names = sorted(one.name for one in self.settings.iterdir())
        except OSError:  # Spark does not find any, either
            return ()
        return tuple(name for name in names if name != _DEFAULTS and not name.endswith(".template"))

    def taken(self, users: str) -> TakenArchive | None:
        """Return how a driver takes it; ``None`` where it is not there, or not to be taken.

        Whoever may write it may run what he likes in the driver, so one that others may write is not taken.

        :param users: the options that the user gives to this JVM; who has a word on archives there has it.
        """
        if any(word in users for word in _OPTIONS) or self.held_up_by or (file := self.file) is None:
            return None
        defaults = self.settings / _DEFAULTS
        option = f'-XX:SharedArchiveFile="{file}" {_QUIET}'
        return TakenArchive(option, self._variables, str(defaults) if defaults.is_file() else None)

    def make(self, environment: Mapping[str, str]) -> Path:
        """Run a small stream as drivers do, and keep the classes that it takes in place of those before.

        :param environment: what the command gets.
        :returns: the file.
        :raises ConfigurationError: there is no place for the file, or no launch would take it.
        :raises JobFailedError: with the last lines that were printed.
        """
        if names := self.held_up_by:
            raise _would_not_be_taken(self.settings, names)
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            before = list(self._files())
            with tempfile.TemporaryDirectory(dir=self.folder) as draft:
                new = self._written(Path(draft), environment)
                made = new.replace(self._named(new))
            for file in set(before) - {made}:
                file.unlink(missing_ok=True)
        except OSError as error:
            problem = Problem("", str(error))
            raise ConfigurationError(f"{self.folder} cannot hold an archive of classes", [problem]) from error
        return made

    @property
    def _variables(self) -> Mapping[str, str]:
        """In a folder that nobody else may write: settings that appeared there would be read."""
        return {_FOLDER_VARIABLE: str(self.folder / "no-settings")}

    def _files(self) -> Iterator[Path]:
        return self.folder.glob(f"spark-{self.digest}-*.jsa")

    def _named(self, file: Path) -> Path:
        return self.folder / f"spark-{self.digest}-{file.stat().st_size}.jsa"

    def _written(self, draft: Path, environment: Mapping[str, str]) -> Path:
        new, log = draft / "new.jsa", draft / "log"
        java = f'-XX:ArchiveClassesAtExit="{new}" {_QUIET}'
        settings = {"spark.ui.enabled": "false", "spark.driver.extraJavaOptions": java}
        given = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
        command = [str(self.binary), "--master", "local[2]", *given, str(STREAM)]
        own = {"PYSPARK_PYTHON": sys.executable, **environment, **self._variables}
        with log.open("w") as output:
            try:
                code = subprocess.run(
                    command,
                    env=own,
                    cwd=draft,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    timeout=_MAKE_SECONDS,
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired:
                code = None
        if code != 0 or not new.exists():
            raise _failed(code, log.read_text(errors="replace"))
        return new


def _would_not_be_taken(settings: Path, names: Sequence[str]) -> ConfigurationError:
    reason = "only its folder brings it, and Java takes no archive where a folder on the class path has files"
    return ConfigurationError(
        f"no driver could start with an archive of classes while {settings} is Spark's folder of settings",
        [Problem(name, reason) for name in names],
    )


def _failed(code: int | None, printed: str) -> JobFailedError:
    ended = f"ended with exit code {code}" if code is not None else f"took longer than {_MAKE_SECONDS:.0f} s"
    last = "\n".join(printed.splitlines()[-_LAST_LINES:])
    return JobFailedError(
        "no archive of Spark's classes was written",
        f"The program {ended}:\n{last}",
        "Java writes none where a folder with files in it is on Spark's class path, such as HADOOP_CONF_DIR. "
        "Drivers start without it as before.",
    )


def _parts(binary: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Give what an archive belongs to."""
    yield _FOLDER_VARIABLE  # stands first on the class path, as :attr:`ClassArchive._variables` say
    yield str(binary.resolve())
    jars = _home(binary, environment) / "jars"
    yield str(jars)
    yield from sorted(f"{jar.name} {jar.stat().st_size}" for jar in jars.glob("*.jar"))
    java = _java(environment).resolve()
    yield str(java)
    release = java.parent.parent / "release"
    yield release.read_text(errors="replace") if release.is_file() else ""


def _java(environment: Mapping[str, str]) -> Path:
    home = environment.get("JAVA_HOME")
    return (
        Path(home, "bin", "java")
        if home
        else Path(shutil.which("java", path=environment.get("PATH")) or "java")
    )


def _home(binary: Path, environment: Mapping[str, str]) -> Path:
    """Return where Spark is; that of the ``pyspark`` package has its commands elsewhere."""
    if home := environment.get("SPARK_HOME"):
        return Path(home)
    beside = binary.resolve().parent.parent
    if (beside / "jars").is_dir():
        return beside
    spec = importlib.util.find_spec("pyspark")
    return Path(spec.origin).parent if spec is not None and spec.origin else beside


def _is_ours(file: Path) -> bool:
    """Whether nobody but this user, or root, may write a file, and its folder."""
    try:
        found = [file.stat(), file.parent.stat()]
    except OSError:
        return False
    owners = (os.getuid(), 0)
    return all(one.st_uid in owners and not one.st_mode & (stat.S_IWGRP | stat.S_IWOTH) for one in found)
