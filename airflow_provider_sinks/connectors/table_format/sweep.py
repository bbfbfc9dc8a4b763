"""What older runs staged and nobody will publish is removed; what a table has, in any snapshot, stays."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from airflow_provider_sinks.connectors.table_format.stage import Stage, StageFolder


def elsewhere(paths: Collection[str], folders: Iterable[str]) -> set[str]:
    """Return which files lie in none of the folders: those of a table that a sink has no more.

    Nobody looks into it. They may be dead letters that were published there.
    """
    known = tuple(f"{folder.rstrip('/')}/" for folder in folders)
    return {path for path in paths if not path.startswith(known)}


def sweep(stages: StageFolder, left: Collection[Stage], referenced: Callable[[set[str]], set[str]]) -> int:
    """Remove leftovers of runs that can never commit again; return how many files that were.

    :param left: they were listed before the tables were loaded that tell who is in force.
    :param referenced: tells of some files which a table has, as it was loaded behind the listing.
    :raises UnavailableError: the storage did not answer.
    """
    if not left:
        return 0
    live = referenced({file.path for stage in left for file in stage.files})
    removed = 0
    for stage in left:
        gone = tuple(file for file in stage.files if file.path not in live)
        stages.remove(Stage(stage.name, stage.run, gone, stage.is_whole), with_files=True)
        removed += len(gone)
    return removed
