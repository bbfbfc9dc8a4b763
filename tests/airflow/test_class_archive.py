"""The archive of Spark's classes: when a launch takes it, and what is said where none can be made."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_sinks.core.errors import ConfigurationError, JobFailedError
from airflow_provider_sinks.hooks.class_archive import ClassArchive
from airflow_provider_sinks.hooks.spark import with_our_settings
from airflow_provider_sinks.local import spark
from tests.airflow.desk import answered

JAVA = "spark.driver.extraJavaOptions"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A Spark, and a place for caches of its own."""
    return {
        **spark.submit_environment(),
        "XDG_CACHE_HOME": str(tmp_path / "the caches"),
        "SPARK_CONF_DIR": str(tmp_path / "settings"),
    }


@pytest.fixture
def archive(environment: dict[str, str]) -> ClassArchive:
    """One that is there."""
    found = ClassArchive.of("spark-submit", environment)
    assert found is not None
    found.folder.mkdir(parents=True, mode=0o700)
    file = found.folder / f"spark-{found.digest}-7.jsa"
    file.write_text("classes")
    file.chmod(0o644)
    return found


def file_of(archive: ClassArchive) -> Path:
    """Return the file that is there."""
    assert archive.file is not None
    return archive.file


def test_a_launch_takes_it_beside_the_users_options(archive: ClassArchive) -> None:
    settings = with_our_settings({JAVA: "-Xss4m"}, {}, "local[2]", archive=archive.taken("-Xss4m"))

    assert settings[JAVA].startswith("-Xss4m -Dlog4j2")
    assert f'-XX:SharedArchiveFile="{file_of(archive)}"' in settings[JAVA]


@pytest.mark.parametrize("users", ["-Xshare:off", "-XX:SharedArchiveFile=mine.jsa"])
def test_who_has_a_word_on_archives_has_it(archive: ClassArchive, users: str) -> None:
    assert archive.taken(users) is None


@pytest.fixture
def settings(archive: ClassArchive) -> Path:
    """Return the folder of Spark's settings, with a user's beside what a release brings."""
    archive.settings.mkdir()
    for name in ("spark-defaults.conf", "spark-env.sh.template"):
        (archive.settings / name).write_text("")
    return archive.settings


def test_settings_come_by_their_own_file_for_no_folder_on_the_class_path_may_have_files(
    archive: ClassArchive, settings: Path
) -> None:
    taken = archive.taken("")

    assert taken is not None
    assert taken.properties_file == str(settings / "spark-defaults.conf")
    assert not Path(taken.variables["SPARK_CONF_DIR"]).exists()


def test_without_settings_there_is_no_file_of_them(archive: ClassArchive) -> None:
    taken = archive.taken("")

    assert taken is not None
    assert taken.properties_file is None


@pytest.mark.parametrize("name", ["hive-site.xml", "log4j2.properties", "spark-env.sh"])
def test_settings_that_are_only_found_in_their_folder_stay_there(
    archive: ClassArchive, environment: dict[str, str], settings: Path, name: str
) -> None:
    (settings / name).write_text("")

    assert archive.taken("") is None
    with pytest.raises(ConfigurationError, match=f"{name}: only its folder brings it"):
        archive.make(environment)


@pytest.mark.parametrize("part", ["file", "folder"])
def test_one_that_others_may_write_is_not_taken(archive: ClassArchive, part: str) -> None:
    (file_of(archive) if part == "file" else archive.folder).chmod(0o777)

    assert archive.taken("") is None


def test_one_that_is_not_there_is_not_taken(archive: ClassArchive) -> None:
    file_of(archive).unlink()

    assert archive.taken("") is None


def test_one_that_is_cut_off_is_not_taken(archive: ClassArchive) -> None:
    file_of(archive).write_text("class")

    assert archive.taken("") is None


def test_without_a_home_a_launch_does_without(environment: dict[str, str]) -> None:
    homeless = {name: value for name, value in environment.items() if name not in ("HOME", "XDG_CACHE_HOME")}

    assert ClassArchive.of("spark-submit", homeless) is None


def test_it_belongs_to_one_spark_and_one_java(
    archive: ClassArchive, environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "jars").mkdir()
    other_spark = ClassArchive.of("spark-submit", {**environment, "SPARK_HOME": str(tmp_path)})
    other_java = ClassArchive.of("spark-submit", {**environment, "JAVA_HOME": str(tmp_path)})

    assert other_spark is not None
    assert other_java is not None
    assert len({archive.digest, other_spark.digest, other_java.digest}) == 3


def test_a_program_that_fails_is_told_with_its_last_lines(
    environment: dict[str, str], tmp_path: Path
) -> None:
    binary = tmp_path / "bin" / "spark-submit"
    binary.parent.mkdir()
    binary.write_text("#!/bin/sh\necho Cannot have non-empty directory in paths\nexit 1\n")
    binary.chmod(0o755)
    broken = ClassArchive.of(str(binary), environment)
    assert broken is not None

    with pytest.raises(JobFailedError) as failed:
        broken.make(environment)

    assert failed.value.primary == "no archive of Spark's classes was written"
    assert "exit code 1:\nCannot have non-empty directory" in failed.value.detail
    assert "HADOOP_CONF_DIR" in failed.value.hint
    assert not list(broken.folder.iterdir())


def test_the_command_names_a_spark_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    refused = answered(capsys, "class-archive", "--spark-submit", "spark9-submit")

    assert refused.code == 64
    assert "--spark-submit: spark9-submit was not found on the PATH" in refused.err
