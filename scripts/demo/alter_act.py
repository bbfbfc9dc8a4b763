"""An act of the demo: a connection is altered under a sink that runs, and no row is lost by it.

The sink runs without an end and is fed all the time. A person fills in the form of
``dags/alter_connection.py``: the connection shall lead to the broker's other listener, which demands a user.
The password is a Variable, and stands in no form. The sink is then launched again in place, and all that it
wrote, before and after, is audited.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from airflow_provider_sinks.local.processes import LocalServiceError
from airflow_provider_sinks.local.stack import PASSWORD_VARIABLE, USER, Stack
from scripts.demo.act import Act
from scripts.demo.audit import audit
from scripts.demo.feed import Feed
from scripts.demo.launches import rows_read, wait_while_it_runs
from scripts.demo.runs import run_dag
from scripts.demo.say import quote, step

SINK, SOURCE, TARGET = "pageviews_clean", "pageviews", "pageviews-clean"
_FORM, _FORM_TASKS = "alter_connection", ("plan", "decide", "approve", "apply")
_SHOWN = ("keep: ", "commit: ", "watch: ", "undo: ", "forget: ", f"sink {SINK}: ")


def move_a_running_sink(stack: Stack, *, after: Act[object], alone: Sequence[Act[object]]) -> None:
    """Start the sink, move it, end it, and compare its target with its source.

    :param after: the act whose end it starts after.
    :param alone: acts that use the connection, and compare the source as it is: what is fed and moved waits.
    """
    after.result()
    stack.airflow.unpause(SINK)
    for other in alone:
        other.result()
    with Feed(stack.broker, SOURCE) as feed:
        wait_while_it_runs(stack, SINK, "running", lambda seen: seen.rows >= feed.rows - 1000)
        before = feed.rows
        run = run_dag(stack, _FORM, tasks=_FORM_TASKS, form=_filled_in(stack))
        events = stack.airflow.task_events(run, "apply")
        quote(event for event in events if event.startswith(_SHOWN))
        wait_while_it_runs(
            stack,
            SINK,
            "running on the other listener",
            lambda seen: rows_read(seen) > before and seen.launch > 1,
        )
    wait_while_it_runs(stack, SINK, "has written everything", lambda seen: rows_read(seen) >= feed.rows)
    with ThreadPoolExecutor(max_workers=1) as beside:
        said = beside.submit(stack.airflow.command, "sinks", "pause", SINK)
        _audit(stack, feed.rows)
        quote([said.result().strip()])


def _filled_in(stack: Stack) -> dict[str, object]:
    """Return the form as it is filled in: the options that change, and the word to do it."""
    options = {**stack.broker.client_config(USER), "sasl.password": {"secret": PASSWORD_VARIABLE}}
    return {"conn_id": "kafka_prod", "set": options, "dry_run": False}


def _audit(stack: Stack, rows: int) -> None:
    with step("Audit") as line:
        result = audit(stack.broker, {}, source=SOURCE, target=TARGET, progress=f"_sinks-progress-{SINK}")
        line.leave(
            f"{result.rows_out:,} rows out of {result.rows_in:,} rows in, "
            f"missing {result.missing}, duplicates {result.duplicates}"
        )
    if not result.is_exact or result.rows_in != rows:
        raise LocalServiceError("the target is not what it should be", str(result))
