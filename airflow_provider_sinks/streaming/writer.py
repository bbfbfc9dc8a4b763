"""What runs in a task: which of the rows are new, and when a writer may commit.

The rules, for ``per_partition`` (a writer is one source partition; *position* is the first source offset that
it has not committed; the driver gives it the epoch's range [from, to)):

- position >= to: the epoch is committed already; read the input to its end and write nothing;
- from < position < to: a part was committed in steps; leave out the rows below the position;
- position < from: rows between were never committed; stop the driver, for going on would lose them.

For ``single`` (one writer; rows carry no usable coordinates): skip exactly when the recorded range equals the
range about to run, and stop when the record lies beyond the start of this range in any other way.

Why this is exactly once. A writer learns its position only *after* its target has fenced every other holder
of the same writer id, so nobody can commit between the reading and its own commit. It commits only what the
input proved to be complete (:mod:`.daemon`), of the topic that was recorded
(:mod:`.source_identity`), and the record that moves its position becomes visible with the
rows or not at all. Whatever dies where: the position says what is in the target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Protocol

import pyarrow as pa

from airflow_provider_sinks.connectors.epoch_writer import RejectedRowError
from airflow_provider_sinks.core.dead_letters.limits import SetAsideError
from airflow_provider_sinks.core.errors import FencedError, RefusedError, SinkError
from airflow_provider_sinks.streaming import daemon
from airflow_provider_sinks.streaming.epoch_plan import EpochPlan, StopDriverError
from airflow_provider_sinks.streaming.measured_input import LargeRowError
from airflow_provider_sinks.streaming.partition_task import PartitionTask
from airflow_provider_sinks.streaming.single_task import SingleTask
from airflow_provider_sinks.streaming.task import Task
from airflow_provider_sinks.streaming.task_report import Outcome, TaskReport


class TaskInput(Protocol):
    """The rows of one task, in batches by the names of a writer's columns; raises where some are missing."""

    @property
    def largest_row_bytes(self) -> int:
        """How large rows are, as far as they were read."""

    def __iter__(self) -> Iterator[pa.RecordBatch]: ...


def write_epoch(
    plan: EpochPlan, to_input: Callable[[Iterable[pa.RecordBatch]], TaskInput]
) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    """Return the function for ``mapInArrow``: it writes the rows of its task and yields one report.

    :param to_input: what makes them of what Spark hands over.
    """

    def write(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        yield _run_proved(plan, to_input(batches)).to_batch()

    return write


def _run_proved(plan: EpochPlan, batches: TaskInput) -> TaskReport:
    """Run a task, unless its input could end without anybody noticing."""
    if daemon.input_is_proved():
        report = run_task(plan.repeated() if _is_repeated() else plan, batches)
        return replace(report, largest_row_bytes=batches.largest_row_bytes)
    return TaskReport(
        "",
        Outcome.STOPPED,
        primary=f'an executor of sink "{plan.sink}" does not run the sink\'s Python daemon',
        detail="Without it a killed executor looks like the end of the input: a part would commit.",
        hint=f"Leave spark.python.daemon.module unset, and see that executors can import {daemon.MODULE}.",
    )


def _is_repeated() -> bool:
    """Whether an attempt of this task came before.

    Where Spark repeats a whole stage, attempts count anew, and Python is not told: such a task may be fenced
    by what the lost attempt opened, and is then repeated once more.
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    return context is not None and context.attemptNumber() > 0


def run_task(plan: EpochPlan, batches: Iterable[pa.RecordBatch]) -> TaskReport:
    """Write the rows of one task.

    :param batches: raises when it ends before it is complete.

    :raises SinkError: when another attempt of the task may help; nothing of this attempt is visible then,
        except whole steps of a long range.
    """
    task = SingleTask(plan) if plan.single_writer else PartitionTask(plan)
    try:
        for batch in batches:
            if batch.num_rows:
                task.take(batch)
        return task.finish()
    except LargeRowError:
        task.give_up()
        return TaskReport(task.writer_id, Outcome.LARGE_ROWS)
    except (StopDriverError, RejectedRowError) as stop:
        task.give_up()
        return _stopped(task, Outcome.STOPPED, stop)
    except FencedError as fenced:
        task.give_up()
        return _stopped(task, Outcome.FENCED, fenced)
    except SetAsideError as too_many:
        task.give_up()
        return _stopped(task, Outcome.TOO_MANY_DEAD, too_many)
    except RefusedError as refused:
        task.give_up()
        return _stopped(task, Outcome.REFUSED, refused)
    except BaseException:
        task.give_up()
        raise


def _stopped(task: Task, outcome: Outcome, error: SinkError) -> TaskReport:
    return TaskReport(task.writer_id, outcome, primary=error.primary, detail=error.detail, hint=error.hint)
