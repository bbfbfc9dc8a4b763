"""Which tests ``make test`` leaves to ``make test-long``: what waits, and the same by another way.

Of those a sibling stays: one moment of a kill, one of those who write.

    pytest --leave-long ...   # all others
    pytest --only-long ...    # only these
"""

from __future__ import annotations

import re

LONG = (
    # kills: those of one sink and of one part stay
    r"test_driver_kills\.py::.*(\[copies,|checkpoint lost\])",
    r"test_process_kills\.py::.*\[(copies|single, Python worker)",
    r"contract/test_postgres_kills\.py::",
    # the contract: a task that comes again stands for a start that does, and three moments for all
    r"::test_a_writer_killed_behind_any_call\[start-",
    r"::test_a_newer_start_fences_the_writers_of_the_older\[(opened|announced)-(prepare|open|begin_epoch)\]",
    r"::test_a_newer_start_fences_the_writers_of_the_older\[(opened-write_batch|announced-pre_commit)\]",
    r"::test_a_writer_killed_behind_any_call\[task-(begin_epoch|prepare)\]",
    r"::test_a_writer_whose_id_was_taken_commits_nothing\[(begin_epoch|write_batch|flush)\]",
    r"::test_a_reset_that_wakes_behind_a_newer_start_takes_nothing_away\[dead-letter topic-",
    # silences are waited out
    r"live/test_sink_job_silence\.py::",
    r"test_kafka_client\.py::test_(a_frozen_or_dead_broker|progress_that_may_not_be_read)",
    r"test_sink_job_exit_codes\.py::test_69_",
    # large rows, and many of them: what is decided about them stands in the pure core
    r"live/test_epoch_bytes\.py::",
    r"live/test_sink_job_memory\.py::",
    r"test_small_epochs\.py::test_a_row_that_its_driver_has_no_room_for_goes_to_workers",
    # executors that lack something: one of them stays
    r"test_sink_job_setup\.py::test_executor_(whose|without_the)",
    r"test_sink_job_exit_codes\.py::test_(66_whatever|70_)",
    # with a librdkafka that was not tested
    r"live/test_row_producers\.py::.*\[([^]]+-)?objects\b",
    r"live/test_range_reader\.py::.*\[([^]]+-)?objects\b",
    # by both of those who write
    r"test_sink_job_formats\.py::test_rows_come_out_as_the_spec_says\[executors write-(?!json, every|bytes)",
    r"test_sink_job_dead_letters\.py::test_a_sink_that_sets_too_much_aside.*-single-",
    r"test_sink_job_dead_letters\.py::.*\[(.*-)?executors write",
    r"test_sink_job_large_rows\.py::.*\[(.*-)?executors write",
    r"test_sink_job_source\.py::.*\[(.*-)?executors write",
    r"test_sink_job_postgres\.py::test_(rows_of_one_key|dead_letters).*executors write",
    r"test_driver_log\.py::.*\[executors write",
    r"test_sink_job_stateful\.py::test_windowed_counts_are_written_as_they_change\[executors write",
)
"""Patterns of node ids."""
_ANY = re.compile("|".join(LONG))


def is_long(node_id: str) -> bool:
    """Whether a test is left to ``make test-long``."""
    return _ANY.search(node_id) is not None
