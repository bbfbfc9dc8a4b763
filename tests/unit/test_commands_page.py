"""The page of the commands names the states that the commands print."""

from __future__ import annotations

import re
from pathlib import Path

from airflow_provider_sinks.core.lifecycle.sink_home import ACTIVE, SinkTask
from airflow_provider_sinks.core.lifecycle.state_history import HistoryState
from airflow_provider_sinks.core.lifecycle.steps import TaskKey

PAGE = (Path(__file__).parents[2] / "docs" / "sinks-commands.md").read_text()
TASKS = re.compile(r"^\| task \| \|\n\|[-|]+\n((?:\|.*\n)+)", re.MULTILINE)
STATES = re.compile(r"^A sink is (\*created\*.*?)\. ", re.MULTILINE | re.DOTALL)


def printed(state: str) -> str:
    """Return what a command prints of a task, with what changes from one to the other left out."""
    task = SinkTask(TaskKey("dag", "run", "task", -1), state, 2, 6, "2026-11-21T20:24:27Z")
    return task.told.replace(task.ended_at, "…")


def test_the_page_names_each_state_of_a_task_in_the_words_of_the_commands() -> None:
    (table,) = TASKS.findall(PAGE)
    named = [name for row in table.splitlines() for name in re.findall(r"`([^`]+)`", row.split("|")[1])]

    assert sorted(named) == sorted(["-", *map(printed, ACTIVE)])


def test_the_page_names_each_state_of_a_sink() -> None:
    (sentence,) = STATES.findall(PAGE)

    assert re.findall(r"\*(\w+)\*", sentence) == [state.value for state in HistoryState]
