"""From where a sink is launched, and which sinks a form leaves alone.

Two tasks that run a sink of one name run one sink: the newer fences the older and goes on behind its
progress, whatever its own query says. Who writes DAG files may mean that. Who fills in a form may not: rows
that his query leaves out would be lost to the sink whose name he chose.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from airflow_provider_sinks.core.dead_letters.replay import SUFFIX
from airflow_provider_sinks.core.errors import ConfigurationError, Problem


@dataclass(frozen=True)
class Home:
    """The task that launches a sink."""

    dag_id: str
    task_id: str


def demand_own(sink: str, here: Home, last: Home | None, *, is_new: bool, own: Collection[str]) -> None:
    """Let a form launch a sink only where no other task has launched it, and never a replay.

    :param here: the form's task.
    :param last: the task that launched the sink last; ``None`` where that is not remembered.
    :param is_new: the sink was never launched.
    :param own: the names that the form's author gave to sinks of the form.
    :raises ConfigurationError: the name is another sink's.
    """
    if what := _foreign(sink, here, last, is_new=is_new, own=own):
        problem = Problem("sink", f"{sink!r} {what}", "choose a name of its own")
        raise ConfigurationError("the form cannot run a sink of this name", [problem])


def _foreign(sink: str, here: Home, last: Home | None, *, is_new: bool, own: Collection[str]) -> str:
    if sink.endswith(SUFFIX):
        return "is the name of a replay, whose progress tells which letters were taken"
    if is_new or here == last or (last is None and sink in own):
        return ""
    return (
        "is a sink that another task has launched" if last else "was launched before, maybe by another task"
    )
