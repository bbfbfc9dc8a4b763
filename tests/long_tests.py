"""Which tests ``make test`` leaves to ``make test-long``: what waits, and the same by another way.

Of those a sibling stays: one moment of a kill, one of those who write.

    pytest --leave-long ...   # all others
    pytest --only-long ...    # only these
"""

from __future__ import annotations

import re

LONG = (
    # kills: those of one sink and of one part stay
    r"test_driver_kills\.py::.*\[copies,",
    r"test_process_kills\.py::.*\[(copies|single, Python worker)",
    r"contract/test_postgres_kills\.py::",
    # the contract: a task that comes again stands for a start that does, and three moments for all
    r"::test_a_writer_killed_behind_any_call\[start-",
    r"::test_a_newer_start_fences_the_writers_of_the_older\[(opened|announced)-(prepare|open|begin_epoch)\]",
    r"::test_a_newer_start_fences_the_writers_of_the_older\[opened-write_batch\]",
    # silences are waited out
    r"live/test_sink_job_silence\.py::",
    # by both of those who write
    r"test_sink_job_formats\.py::test_rows_come_out_as_the_spec_says\[executors write-(?!json, every|bytes)",
    r"test_sink_job_dead_letters\.py::test_a_sink_that_sets_too_much_aside.*-single-",
    r"test_sink_job_dead_letters\.py::test_a_sink_that_sets_too_much_aside.*limits1.*executors write",
    r"test_driver_log\.py::.*\[executors write",
    r"test_sink_job_stateful\.py::test_windowed_counts_are_written_as_they_change\[executors write",
)
"""Patterns of node ids."""
_ANY = re.compile("|".join(LONG))


def is_long(node_id: str) -> bool:
    """Whether a test is left to ``make test-long``."""
    return _ANY.search(node_id) is not None
