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


def sweep(
    stages: StageFolder, run: str, kept: Collection[str], referenced: Callable[[set[str]], set[str]]
) -> int:
    """Remove the leftovers of all runs but one, behind its fence; return how many files that were.

    :param kept: the names of stages that are still to be published.
    :param referenced: tells of some files which a table has, as it was loaded behind the fence.
    :raises UnavailableError: the storage did not answer.
    """
    left = [stage for stage in stages.leftovers(but=run) if stage.name not in kept]
    if not left:
        return 0
    live = referenced({file.path for stage in left for file in stage.files})
    removed = 0
    for stage in left:
        gone = tuple(file for file in stage.files if file.path not in live)
        stages.remove(Stage(stage.name, stage.run, gone, stage.is_whole), with_files=True)
        removed += len(gone)
    return removed
