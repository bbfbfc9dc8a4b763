"""What stops a sink: one row for each way to get there, for all tests that look at refusals."""

from __future__ import annotations

import json
from dataclasses import replace

from airflow_provider_sinks.connectors.kafka.broker_memory import BrokerMemory, TransactionalIdFacts
from airflow_provider_sinks.core.decision.facts import Existence, ResourceFacts, Unfit
from airflow_provider_sinks.core.decision.reasons.checkpoint import CheckpointReason
from airflow_provider_sinks.core.decision.reasons.output import OutputReason
from airflow_provider_sinks.core.decision.reasons.owner import OwnerReason
from airflow_provider_sinks.core.decision.reasons.progress import ProgressReason
from airflow_provider_sinks.core.decision.reasons.progress_place import (
    PlaceReason,
)
from airflow_provider_sinks.core.decision.reasons.reason import Reason
from airflow_provider_sinks.core.decision.reasons.records import (
    RecordsReason,
)
from airflow_provider_sinks.core.decision.reasons.source import SourceReason
from airflow_provider_sinks.core.decision.reasons.spec import SpecReason
from airflow_provider_sinks.core.decision.verdict import Verdict
from airflow_provider_sinks.core.progress.checkpoint import CheckpointFacts
from airflow_provider_sinks.core.progress.history import NO_HISTORY, Finding, Flaw, History
from airflow_provider_sinks.core.progress.identity import ResourceKind
from airflow_provider_sinks.core.progress.record import DRIVER
from tests.facts import (
    DATA,
    PROGRESS,
    SOURCE,
    history,
    missing,
    observation,
    present,
    progress_as,
    record,
    request,
    unseen,
    witness,
)


def flaws(*findings: Finding) -> tuple[Flaw, ...]:
    return tuple(Flaw(finding, "all", 17, "what was seen") for finding in findings)


def deleted(times: int) -> tuple[Flaw, ...]:
    return flaws(*[Finding.DELETED] * times)


OTHER_DATA = present(DATA, id="id-other")
NARROW = Unfit(
    "has no column region", "The query returns it, type text.", "ALTER TABLE … ADD COLUMN region text"
)
UNWRITTEN = history(rows_total=0)
ANNOUNCED = record(epoch=6, to={0: 40, 1: 40}, writers=(DRIVER, "p0", "p1"))
FILTERED = History({DRIVER: ANNOUNCED, "p0": record(rows_total=300)})
"""Epoch 7 ran from 40 to 50, and partition 1 had no row in it."""
NAMED = {"p0": (300, 0), "p1": (300, 0)}
PARTS = {DRIVER: record(totals=NAMED), "p0": record(rows_total=300), "p1": record(rows_total=300)}
FORGOTTEN_P0 = History(
    {
        DRIVER: record(epoch=4, to={0: 10, 1: 10}, totals={"p0": (10, 0), "p1": (10, 0)}),
        "p0": record(epoch=4, to={0: 10, 1: 10}, rows_total=10),
        "p1": record(from_={0: 20, 1: 20}, to={0: 20, 1: 120}, rows_total=120, totals={"p0": (20, 0)}),
    }
)
"""A target forgot epoch 5 of p0, and went on with rows of p1 alone: they prove that epoch 5 ended."""
TABLES: dict[str, ResourceFacts] = {
    "data": present(DATA, kind=ResourceKind.TABLE),
    "progress": present(PROGRESS, kind=ResourceKind.TABLE),
}
CUT = present(SOURCE, partitions=3, low={0: 0, 1: 0, 2: 500}, high={0: 100, 1: 100, 2: 600})
"""A partition was added, and its first records are gone."""
BY_ID = json.dumps(
    {
        "name": "orders",
        "source": {"kafka": {"connection": "k", "topic": SOURCE.name, "schema": "id int, n int"}},
        "target": {"kafka": {"connection": "k", "topic": DATA.name, "key": ["id"], "envelope": "upsert"}},
    }
)
COUNTING = json.dumps(
    {
        "name": "orders",
        "source": {"kafka": {"connection": "k", "topic": SOURCE.name, "schema": "id int, n int"}},
        "target": {"kafka": {"connection": "k", "topic": DATA.name, "key": ["id"]}},
        "query": "SELECT id, count(*) AS c FROM source GROUP BY id",
    }
)
LONG = present(SOURCE, high={0: 300, 1: 300})
BEFORE = history(rows_total=400, epoch=6, from_={0: 30, 1: 30}, to={0: 40, 1: 40}, batch=5)
WITHOUT_P0 = History({DRIVER: record(totals=NAMED), "p1": record(rows_total=300)})
REPAIRED = present(PROGRESS, low={0: 7})


def reasons(verdict: Verdict) -> list[Reason]:
    return [refusal.reason for refusal in verdict.refusals]


LAST_WRITER_ONLY = History({"p1": record(epoch=1, from_={0: 0, 1: 0}, to={0: 300, 1: 300}, rows_total=300)})
ELSEWHERE = ResourceFacts(PROGRESS.name, Existence.MISSING, "cluster-b")
FIRST_EPOCH = witness(epoch=1, rows=600, offsets={0: 300, 1: 300})
COMMIT, FENCE = TransactionalIdFacts("CompleteCommit", 3), TransactionalIdFacts("Empty", 4)
COMMITTED = BrokerMemory({DRIVER: COMMIT, "p0": COMMIT})
FENCED_SINCE = BrokerMemory({DRIVER: FENCE, "p0": FENCE})

REFUSALS = {
    "progress-missing-although-rows-were-written": (
        unseen(), request(witness=witness()), ProgressReason.PROGRESS_LOST,
        'progress of sink "orders" is lost',
        ["is missing", "500 rows through epoch 7 of generation 1"], ["start_over"],
    ),
    "no-record-although-all-was-set-aside": (
        observation(history=NO_HISTORY, **TABLES), request(witness=witness(rows=0, dead=500)),
        ProgressReason.PROGRESS_LOST, 'progress of sink "orders" is lost',
        ["0 rows through epoch 7 of generation 1", "500 dead letters"],
        ["resume_from_witness", "start_over"],
    ),
    "no-record-although-rows-were-written": (
        observation(history=NO_HISTORY), request(witness=witness()), ProgressReason.PROGRESS_LOST,
        'progress of sink "orders" is lost',
        ["has no record of this sink", 'Data topic "orders-out" holds up to 200 records'],
        ["resume_from_witness", "start_over"],
    ),
    "emptied-although-rows-were-written": (
        observation(history=NO_HISTORY, progress=present(PROGRESS, low={0: 9})), request(witness=witness()),
        ProgressReason.PROGRESS_LOST, 'progress of sink "orders" is lost',
        ["begins at offset 9 and has no record"], ["resume_from_witness", "start_over"],
    ),
    "emptied-without-a-witness": (
        observation(history=NO_HISTORY, progress=present(PROGRESS, low={0: 9})), request(),
        ProgressReason.PROGRESS_EMPTIED,
        'progress topic "_sinks-progress-orders" of sink "orders" was emptied',
        ["begins at offset 9", "something was here"], ["start_over"],
    ),
    "deleted-by-hand": (
        observation(history=replace(NO_HISTORY, flaws=deleted(2))), request(),
        ProgressReason.PROGRESS_EMPTIED,
        'progress topic "_sinks-progress-orders" of sink "orders" was emptied',
        ["has 2 deletion marks in place of this sink's records"], ["start_over"],
    ),
    "nothing-but-garbage": (
        observation(history=replace(NO_HISTORY, flaws=(Flaw(Finding.GARBAGE, "all", 3, "not JSON"),))),
        request(), RecordsReason.GARBAGE, 'progress of sink "orders" cannot be read',
        ["Offset 3", "not JSON"], ["start_over"],
    ),
    "output-missing": (
        observation(data=missing(DATA)), request(), OutputReason.OUTPUT_LOST,
        'data topic "orders-out" is missing, but sink "orders" has written to it',
        ["500 rows through epoch 7 of generation 1", "id-data", "cluster-a"],
        ["continue_without_output", "start_over"],
    ),
    "output-with-another-id": (
        observation(data=OTHER_DATA), request(), OutputReason.OUTPUT_REPLACED,
        'data topic "orders-out" is not the one that sink "orders" has written to',
        ["Recorded was", "id-data", "Found is", "id-other"], ["adopt", "start_over"],
    ),
    "output-in-another-cluster": (
        observation(data=present(DATA, system="cluster-b")), request(), OutputReason.OUTPUT_REPLACED,
        'data topic "orders-out" is not the one', ["cluster-a", "cluster-b"], ["adopt", "start_over"],
    ),
    "output-with-fewer-partitions": (
        observation(data=present(DATA, partitions=1)), request(), OutputReason.OUTPUT_REPLACED,
        'data topic "orders-out" is not the one', ["2 partitions", "1 partition"], ["adopt", "start_over"],
    ),
    "output-that-cannot-take-the-rows": (
        observation(data=present(DATA, unfit=NARROW)), request(), OutputReason.OUTPUT_UNFIT,
        'data topic "orders-out" has no column region', ["type text"], [],
    ),
    "source-with-another-id": (
        observation(source=present(SOURCE, id="id-other")), request(), SourceReason.SOURCE_REPLACED,
        'source topic "orders-in" is not the one that sink "orders" has read from',
        ["id-source", "id-other", "0: 50, 1: 50", "silently"], ["adopt", "start_over"],
    ),
    "source-in-another-cluster": (
        observation(source=present(SOURCE, system="cluster-b")), request(), SourceReason.SOURCE_REPLACED,
        'source topic "orders-in" is not the one', ["cluster-a", "cluster-b"], ["adopt", "start_over"],
    ),
    "source-with-fewer-partitions": (
        observation(source=present(SOURCE, partitions=1)), request(), SourceReason.SOURCE_REPLACED,
        'source topic "orders-in" is not the one', ["1 partition in cluster"], ["start_over"],
    ),
    "source-missing": (
        observation(source=missing(SOURCE)), request(), SourceReason.SOURCE_LOST,
        'source topic "orders-in" is missing, but sink "orders" has read from it', ["id-source"], [],
    ),
    "source-records-removed": (
        observation(source=present(SOURCE, low={0: 50, 1: 80})), request(), SourceReason.RECORDS_REMOVED,
        'sink "orders" has missed up to 30 records of source topic "orders-in"',
        ["offsets 1: 50 to 79 (by source", "500 rows through epoch 7"], ["skip_lost", "start_over"],
    ),
    "source-records-removed-under-a-stateful-plan": (
        observation(source=present(SOURCE, low={0: 51})), request(stateful=True),
        SourceReason.RECORDS_REMOVED,
        'sink "orders" has missed up to 1 record of', ["0: 50 to 50"], ["start_over"],
    ),
    "source-shorter-than-what-was-read": (
        observation(source=present(SOURCE, high={0: 30, 1: 50})), request(), SourceReason.SOURCE_SHORTER,
        'source topic "orders-in" ends before the place that sink "orders" has read to',
        ["offsets 0: 30 to 49 (by source", "500 rows through epoch 7"], ["start_over"],
    ),
    "source-shorter-than-an-epoch-that-is-not-whole": (
        observation(
            history=FILTERED, source=present(SOURCE, high={0: 50, 1: 45}),
            checkpoint=CheckpointFacts("/checkpoints/1", 5, 6),
        ),
        request(), SourceReason.SOURCE_SHORTER,
        'source topic "orders-in" ends before the place', ["offsets 1: 45 to 49 (by source"], ["start_over"],
    ),
    "source-with-another-id-and-shorter": (
        observation(source=present(SOURCE, id="id-other", high={0: 30, 1: 50})), request(),
        SourceReason.SOURCE_REPLACED, 'source topic "orders-in" is not the one', ["id-other"], ["start_over"],
    ),
    "source-with-another-id-and-cut-under-a-stateful-plan": (
        observation(source=replace(CUT, id="id-other")), request(stateful=True),
        SourceReason.SOURCE_REPLACED, 'source topic "orders-in" is not the one', ["id-other"], ["start_over"],
    ),
    "source-partition-added-and-cut-under-a-stateful-plan": (
        observation(source=CUT), request(stateful=True), SourceReason.PARTITION_CUT,
        'source topic "orders-in" has new partitions whose first records sink "orders" can never read',
        ["begin at offsets 2: 500", "offset 0 only", "500 rows through epoch 7"], ["start_over"],
    ),
    "emptied-in-part": (
        observation(history=History({"p1": record(rows_total=300)}), progress=REPAIRED),
        request(witness=witness(rows=300)), ProgressReason.PROGRESS_EMPTIED_IN_PART,
        'progress topic "_sinks-progress-orders" of sink "orders" was emptied in part',
        ['["orders","driver"]', "begins at offset 7", "300 rows through epoch 7"],
        ["resume_from_witness", "start_over"],
    ),
    "a-writer-deleted": (
        observation(history=WITHOUT_P0), request(),
        ProgressReason.PROGRESS_EMPTIED_IN_PART,
        'progress topic "_sinks-progress-orders" of sink "orders" was emptied in part',
        ['keys ["orders","p0"]'], ["start_over"],
    ),
    "a-writer-forgotten-behind-the-rows-of-another": (
        observation(history=FORGOTTEN_P0, source=LONG),
        request(witness=witness(rows=40, offsets={0: 20, 1: 20}, epoch=5)),
        ProgressReason.PROGRESS_EMPTIED_IN_PART,
        'progress topic "_sinks-progress-orders" of sink "orders" was emptied in part',
        ['older than the others say: keys ["orders","p0"]'], ["resume_from_witness", "start_over"],
    ),
    "a-database-restored": (
        observation(history=BEFORE, **TABLES), request(witness=witness()),
        ProgressReason.PROGRESS_ROLLED_BACK, 'progress of sink "orders" was rolled back',
        ["still there, would be written again", "at offsets 0: 40, 1: 40, by the witness at 0: 50"],
        ["resume_from_records", "resume_from_witness", "start_over"],
    ),
    "a-database-forgot-a-writer": (
        observation(history=FORGOTTEN_P0, source=LONG, **TABLES), request(),
        ProgressReason.PROGRESS_EMPTIED_IN_PART,
        'progress table "_sinks-progress-orders" of sink "orders" was emptied in part',
        ['older than the others say: keys ["orders","p0"]'], ["resume_from_records", "start_over"],
    ),
    "a-database-older-than-the-checkpoint": (
        observation(checkpoint=CheckpointFacts("/checkpoints/1", 7, 7), **TABLES), request(),
        CheckpointReason.CHECKPOINT_AHEAD,
        'progress of sink "orders" was rolled back', ["batch 7"], ["resume_from_records", "start_over"],
    ),
    "witness-knows-more-dead-letters": (
        observation(history=history(dead_total=3)), request(witness=witness(dead=4)),
        ProgressReason.PROGRESS_ROLLED_BACK, 'progress of sink "orders" was rolled back',
        ["and 4 dead letters where 3 are recorded"], ["resume_from_witness", "start_over"],
    ),
    "witness-knows-more-offsets-of-the-same-epoch": (
        observation(history=LAST_WRITER_ONLY, source=LONG), request(witness=FIRST_EPOCH),
        ProgressReason.PROGRESS_ROLLED_BACK, 'progress of sink "orders" was rolled back',
        ["goes on at offsets 0: 0, 1: 300", "witness at 0: 300, 1: 300"],
        ["resume_from_witness", "start_over"],
    ),
    "in-another-cluster": (
        unseen(progress=ELSEWHERE), request(witness=witness()), ProgressReason.PROGRESS_LOST,
        'sink "orders" has written to another cluster',
        ["500 rows", "in cluster cluster-a", "leads to cluster cluster-b"], ["start_over"],
    ),
    "the-broker-knows-commits": (
        unseen(data=present(DATA), memory=COMMITTED), request(), ProgressReason.PROGRESS_LOST,
        'progress of sink "orders" is lost', ["coordinator knows of commits by driver, p0", "200 records"],
        ["start_over"],
    ),
    "the-broker-knows-use-and-the-data-topic-is-full": (
        unseen(data=present(DATA), memory=FENCED_SINCE), request(), ProgressReason.PROGRESS_LOST,
        'progress of sink "orders" is lost', ["coordinator knows of driver, p0"], ["start_over"],
    ),
    "witness-newer": (
        observation(), request(witness=witness(epoch=9, rows=700)), ProgressReason.PROGRESS_ROLLED_BACK,
        'progress of sink "orders" was rolled back',
        ["records 500 rows through epoch 7", "knows 700 rows through epoch 9"],
        ["resume_from_witness", "start_over"],
    ),
    "witness-newer-and-data-missing": (
        observation(data=missing(DATA)), request(witness=witness(epoch=9)),
        ProgressReason.PROGRESS_ROLLED_BACK,
        'progress of sink "orders" was rolled back', ["epoch 9"], ["start_over"],
    ),
    "another-owner": (
        observation(history=history(owner="them")), request(), OwnerReason.OTHER_OWNER,
        'sink "orders" belongs to another Airflow',
        ["owner them", "this Airflow is us", "run-1"], ["take_over"],
    ),
    "newer-format": (
        observation(history=history(flaws=flaws(Finding.NEWER_FORMAT))), request(),
        RecordsReason.NEWER_FORMAT,
        'sink "orders" was taken over by a newer start', ["Offset 17", '["orders","all"]'], [],
    ),
    "newer-generation": (
        observation(history=history(generation=2)), request(generation=1), RecordsReason.NEWER_GENERATION,
        'sink "orders" was taken over by a newer start', ["saw generation 1", "generation 2", "run-1"], [],
    ),
    "garbage": (
        observation(history=history(flaws=flaws(Finding.GARBAGE))), request(), RecordsReason.GARBAGE,
        'progress of sink "orders" cannot be read', ["Offset 17", "what was seen"], ["start_over"],
    ),
    "contradiction": (
        observation(history=history(flaws=flaws(Finding.BACKWARDS))), request(), RecordsReason.BACKWARDS,
        'progress of sink "orders" contradicts itself', ["Offset 17", "what was seen"], ["start_over"],
    ),
    "one-record-deleted": (
        observation(history=history(flaws=flaws(Finding.DELETED))), request(), RecordsReason.BACKWARDS,
        'progress of sink "orders" contradicts itself', ["Offset 17", "deleted"], ["start_over"],
    ),
    "progress-with-two-partitions": (
        observation(progress=progress_as(partitions=2), history=None), request(),
        PlaceReason.PROGRESS_UNFIT, 'progress topic "_sinks-progress-orders" has 2 partitions',
        ["order"], [],
    ),
    "progress-not-compacted": (
        observation(progress=progress_as(cleanup_policy="compact,delete")), request(),
        PlaceReason.PROGRESS_UNFIT, 'progress topic "_sinks-progress-orders" is not exactly compacted',
        ["cleanup.policy=compact,delete"], [],
    ),
    "progress-copied-to-another-topic": (
        observation(progress=present(PROGRESS, id="id-copy")), request(), PlaceReason.PROGRESS_REPLACED,
        'progress topic "_sinks-progress-orders" is not the one', ["id-progress", "id-copy", "copies"],
        ["adopt", "start_over"],
    ),
    "checkpoint-ahead": (
        observation(checkpoint=CheckpointFacts("/checkpoints/1", 7, 7)), request(),
        CheckpointReason.CHECKPOINT_AHEAD,
        'progress of sink "orders" was rolled back', ["committed batch 7", "batch is 6"], ["start_over"],
    ),
    "state-lost": (
        observation(checkpoint=CheckpointFacts("/checkpoints/1")), request(stateful=True),
        CheckpointReason.STATE_LOST,
        'the state of sink "orders" is lost', ["/checkpoints/1", "batch 6", "batch -1"], ["start_over"],
    ),
    "spec-with-another-key": (
        observation(history=history(spec=BY_ID)), request(declared=BY_ID.replace('"id"', '"n"')),
        SpecReason.SPEC_CHANGED,
        'the spec of sink "orders" was changed in a way that its generation cannot take',
        ['target.kafka.key: ["id"] -> ["n"]: needs a new generation', "500 rows through epoch 7"],
        ["go_on_changed", "start_over"],
    ),
    "spec-with-another-stateful-query": (
        observation(history=history(spec=COUNTING)),
        request(declared=COUNTING.replace("FROM source", "FROM source WHERE n > 1"), stateful=True),
        SpecReason.STATE_OF_ANOTHER_QUERY, 'the spec of sink "orders" was changed',
        ["the state in Spark's checkpoint was made of"], ["start_over"],
    ),
}  # fmt: skip
"""What was seen and asked for, and what follows: reason, primary, parts of the detail, ways on."""
