"""How Spark writes its two files of each epoch into a checkpoint on a disk of this machine.

By default it goes by Hadoop's ``FileContext``. Without Hadoop's native library that starts a process for each
question whether a file is a symbolic link: ten processes for each of the two files, a hundred milliseconds of
an epoch and more. Hadoop's ``FileSystem`` does not ask, and renames by the same call of the system. Elsewhere
Spark's choice stays: only some file systems rename in one step, and Spark knows which.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from py4j.java_gateway import JavaClass  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

_SETTING = "spark.sql.streaming.checkpointFileManagerClass"
_NAME = "FileSystemBasedCheckpointFileManager"


def write_without_processes(spark: SparkSession, folder: str) -> None:
    """Have the next query write its checkpoint by ``FileSystem``, unless the user has chosen another way.

    :param folder: of the checkpoint, or its URI.
    """
    streaming: Any = spark._jvm.org.apache.spark.sql.execution.streaming  # type: ignore[union-attr]  # noqa: SLF001
    found = getattr(streaming.checkpointing, _NAME)
    is_local = urlsplit(folder).scheme in ("", "file")
    if is_local and isinstance(found, JavaClass) and spark.conf.get(_SETTING, None) is None:
        spark.conf.set(_SETTING, f"org.apache.spark.sql.execution.streaming.checkpointing.{_NAME}")
