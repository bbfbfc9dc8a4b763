"""Tell whether Spark is whole.

``pyspark`` and ``pyspark-client`` own the same files: both must be of one version, and none may be missing.
"""

from __future__ import annotations

import sys
from importlib.metadata import PackagePath, distribution


def _is_whole(file: PackagePath) -> bool:
    path = file.locate()
    return path.exists() and file.size in {None, path.stat().st_size}  # type: ignore[attr-defined]


def main() -> int:
    """Return 0 when every file of both distributions is there in full length."""
    spark, client = distribution("pyspark"), distribution("pyspark-client")
    if spark.version != client.version:
        sys.stderr.write(
            f"pyspark {spark.version} and pyspark-client {client.version} must be of one version\n"
        )
        return 1
    files = [file for owner in (spark, client) for file in owner.files or () if file.suffix != ".pyc"]
    broken = [str(file) for file in files if not _is_whole(file)]
    for name in broken[:5]:
        sys.stderr.write(f"Spark is not whole: {name}\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
