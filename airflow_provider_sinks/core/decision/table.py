"""The tables of the decision: one cell for each combination of what was seen. :mod:`.decide` asks them."""

from __future__ import annotations

import enum

from airflow_provider_sinks.core.decision.classify import (
    ProgressSeen,
    ReachSeen,
    RecordsSeen,
    ResourceSeen,
    ShapeSeen,
    WitnessSeen,
)
from airflow_provider_sinks.core.decision.ways import Reason
from airflow_provider_sinks.core.progress.checkpoint import CheckpointUse


class Step(enum.Enum):
    """What a cell of a table lets a start do."""

    WAIT = "wait until it can be seen"
    CREATE = "make the topic, go on"
    TAKE = "go on with a topic whose records, if any, nobody remembers writing"
    ADOPT = "go on with another topic; nothing was written to the old one"
    GO_ON = "go on"
    GREW = "go on; keys move, because there are more partitions"


P, T, W = ProgressSeen, ResourceSeen, WitnessSeen

DECISIONS: dict[tuple[ProgressSeen, ResourceSeen, WitnessSeen], Step | Reason] = {
    # progress could not be read: nothing can be decided
    (P.UNKNOWN, T.UNKNOWN, W.SILENT): Step.WAIT,
    (P.UNKNOWN, T.MISSING, W.SILENT): Step.WAIT,
    (P.UNKNOWN, T.PRESENT, W.SILENT): Step.WAIT,
    (P.UNKNOWN, T.GREW, W.SILENT): Step.WAIT,
    (P.UNKNOWN, T.REPLACED, W.SILENT): Step.WAIT,
    (P.UNKNOWN, T.UNKNOWN, W.AHEAD): Step.WAIT,
    (P.UNKNOWN, T.MISSING, W.AHEAD): Step.WAIT,
    (P.UNKNOWN, T.PRESENT, W.AHEAD): Step.WAIT,
    (P.UNKNOWN, T.GREW, W.AHEAD): Step.WAIT,
    (P.UNKNOWN, T.REPLACED, W.AHEAD): Step.WAIT,
    (P.UNKNOWN, T.UNKNOWN, W.BROKER): Step.WAIT,
    (P.UNKNOWN, T.MISSING, W.BROKER): Step.WAIT,
    (P.UNKNOWN, T.PRESENT, W.BROKER): Step.WAIT,
    (P.UNKNOWN, T.GREW, W.BROKER): Step.WAIT,
    (P.UNKNOWN, T.REPLACED, W.BROKER): Step.WAIT,
    # missing, or no record of this sink: a new sink and a lost progress topic look the same
    (P.NONE, T.UNKNOWN, W.SILENT): Step.WAIT,
    (P.NONE, T.MISSING, W.SILENT): Step.CREATE,
    (P.NONE, T.PRESENT, W.SILENT): Step.TAKE,
    (P.NONE, T.GREW, W.SILENT): Step.TAKE,
    (P.NONE, T.REPLACED, W.SILENT): Step.TAKE,
    # ... unless Airflow remembers that rows were written, or the broker that this sink has committed
    (P.NONE, T.UNKNOWN, W.AHEAD): Reason.PROGRESS_LOST,
    (P.NONE, T.MISSING, W.AHEAD): Reason.PROGRESS_LOST,
    (P.NONE, T.PRESENT, W.AHEAD): Reason.PROGRESS_LOST,
    (P.NONE, T.GREW, W.AHEAD): Reason.PROGRESS_LOST,
    (P.NONE, T.REPLACED, W.AHEAD): Reason.PROGRESS_LOST,
    (P.NONE, T.UNKNOWN, W.BROKER): Reason.PROGRESS_LOST,
    (P.NONE, T.MISSING, W.BROKER): Reason.PROGRESS_LOST,
    (P.NONE, T.PRESENT, W.BROKER): Reason.PROGRESS_LOST,
    (P.NONE, T.GREW, W.BROKER): Reason.PROGRESS_LOST,
    (P.NONE, T.REPLACED, W.BROKER): Reason.PROGRESS_LOST,
    # something was here
    (P.EMPTIED, T.UNKNOWN, W.SILENT): Reason.PROGRESS_EMPTIED,
    (P.EMPTIED, T.MISSING, W.SILENT): Reason.PROGRESS_EMPTIED,
    (P.EMPTIED, T.PRESENT, W.SILENT): Reason.PROGRESS_EMPTIED,
    (P.EMPTIED, T.GREW, W.SILENT): Reason.PROGRESS_EMPTIED,
    (P.EMPTIED, T.REPLACED, W.SILENT): Reason.PROGRESS_EMPTIED,
    (P.EMPTIED, T.UNKNOWN, W.AHEAD): Reason.PROGRESS_LOST,
    (P.EMPTIED, T.MISSING, W.AHEAD): Reason.PROGRESS_LOST,
    (P.EMPTIED, T.PRESENT, W.AHEAD): Reason.PROGRESS_LOST,
    (P.EMPTIED, T.GREW, W.AHEAD): Reason.PROGRESS_LOST,
    (P.EMPTIED, T.REPLACED, W.AHEAD): Reason.PROGRESS_LOST,
    (P.EMPTIED, T.UNKNOWN, W.BROKER): Reason.PROGRESS_EMPTIED,
    (P.EMPTIED, T.MISSING, W.BROKER): Reason.PROGRESS_EMPTIED,
    (P.EMPTIED, T.PRESENT, W.BROKER): Reason.PROGRESS_EMPTIED,
    (P.EMPTIED, T.GREW, W.BROKER): Reason.PROGRESS_EMPTIED,
    (P.EMPTIED, T.REPLACED, W.BROKER): Reason.PROGRESS_EMPTIED,
    # some of it still is
    (P.IN_PART, T.UNKNOWN, W.SILENT): Reason.PROGRESS_EMPTIED_IN_PART,
    (P.IN_PART, T.MISSING, W.SILENT): Reason.PROGRESS_EMPTIED_IN_PART,
    (P.IN_PART, T.PRESENT, W.SILENT): Reason.PROGRESS_EMPTIED_IN_PART,
    (P.IN_PART, T.GREW, W.SILENT): Reason.PROGRESS_EMPTIED_IN_PART,
    (P.IN_PART, T.REPLACED, W.SILENT): Reason.PROGRESS_EMPTIED_IN_PART,
    (P.IN_PART, T.UNKNOWN, W.AHEAD): Reason.PROGRESS_ROLLED_BACK,
    (P.IN_PART, T.MISSING, W.AHEAD): Reason.PROGRESS_ROLLED_BACK,
    (P.IN_PART, T.PRESENT, W.AHEAD): Reason.PROGRESS_ROLLED_BACK,
    (P.IN_PART, T.GREW, W.AHEAD): Reason.PROGRESS_ROLLED_BACK,
    (P.IN_PART, T.REPLACED, W.AHEAD): Reason.PROGRESS_ROLLED_BACK,
    (P.IN_PART, T.UNKNOWN, W.BROKER): Reason.PROGRESS_EMPTIED_IN_PART,
    (P.IN_PART, T.MISSING, W.BROKER): Reason.PROGRESS_EMPTIED_IN_PART,
    (P.IN_PART, T.PRESENT, W.BROKER): Reason.PROGRESS_EMPTIED_IN_PART,
    (P.IN_PART, T.GREW, W.BROKER): Reason.PROGRESS_EMPTIED_IN_PART,
    (P.IN_PART, T.REPLACED, W.BROKER): Reason.PROGRESS_EMPTIED_IN_PART,
    # a record, nothing written: the topic may come and go
    (P.UNWRITTEN, T.UNKNOWN, W.SILENT): Step.WAIT,
    (P.UNWRITTEN, T.MISSING, W.SILENT): Step.CREATE,
    (P.UNWRITTEN, T.PRESENT, W.SILENT): Step.GO_ON,
    (P.UNWRITTEN, T.GREW, W.SILENT): Step.GREW,
    (P.UNWRITTEN, T.REPLACED, W.SILENT): Step.ADOPT,
    (P.UNWRITTEN, T.UNKNOWN, W.AHEAD): Reason.PROGRESS_ROLLED_BACK,
    (P.UNWRITTEN, T.MISSING, W.AHEAD): Reason.PROGRESS_ROLLED_BACK,
    (P.UNWRITTEN, T.PRESENT, W.AHEAD): Reason.PROGRESS_ROLLED_BACK,
    (P.UNWRITTEN, T.GREW, W.AHEAD): Reason.PROGRESS_ROLLED_BACK,
    (P.UNWRITTEN, T.REPLACED, W.AHEAD): Reason.PROGRESS_ROLLED_BACK,
    # ... a record is there, so the broker need not be asked what it remembers: as if it were silent
    (P.UNWRITTEN, T.UNKNOWN, W.BROKER): Step.WAIT,
    (P.UNWRITTEN, T.MISSING, W.BROKER): Step.CREATE,
    (P.UNWRITTEN, T.PRESENT, W.BROKER): Step.GO_ON,
    (P.UNWRITTEN, T.GREW, W.BROKER): Step.GREW,
    (P.UNWRITTEN, T.REPLACED, W.BROKER): Step.ADOPT,
    # a record, something written: the topic must be the one it was written to
    (P.WRITTEN, T.UNKNOWN, W.SILENT): Step.WAIT,
    (P.WRITTEN, T.MISSING, W.SILENT): Reason.OUTPUT_LOST,
    (P.WRITTEN, T.PRESENT, W.SILENT): Step.GO_ON,
    (P.WRITTEN, T.GREW, W.SILENT): Step.GREW,
    (P.WRITTEN, T.REPLACED, W.SILENT): Reason.OUTPUT_REPLACED,
    (P.WRITTEN, T.UNKNOWN, W.AHEAD): Reason.PROGRESS_ROLLED_BACK,
    (P.WRITTEN, T.MISSING, W.AHEAD): Reason.PROGRESS_ROLLED_BACK,
    (P.WRITTEN, T.PRESENT, W.AHEAD): Reason.PROGRESS_ROLLED_BACK,
    (P.WRITTEN, T.GREW, W.AHEAD): Reason.PROGRESS_ROLLED_BACK,
    (P.WRITTEN, T.REPLACED, W.AHEAD): Reason.PROGRESS_ROLLED_BACK,
    (P.WRITTEN, T.UNKNOWN, W.BROKER): Step.WAIT,
    (P.WRITTEN, T.MISSING, W.BROKER): Reason.OUTPUT_LOST,
    (P.WRITTEN, T.PRESENT, W.BROKER): Step.GO_ON,
    (P.WRITTEN, T.GREW, W.BROKER): Step.GREW,
    (P.WRITTEN, T.REPLACED, W.BROKER): Reason.OUTPUT_REPLACED,
}
"""What to do about an output: the data topic, and the dead-letter topic in its own right."""

SOURCES: dict[tuple[bool, ResourceSeen], Step | Reason] = {
    # is a source recorded?
    (False, T.UNKNOWN): Step.WAIT,
    (False, T.MISSING): Step.WAIT,
    (False, T.PRESENT): Step.GO_ON,
    (False, T.GREW): Step.GO_ON,
    (False, T.REPLACED): Step.GO_ON,
    (True, T.UNKNOWN): Step.WAIT,
    (True, T.MISSING): Reason.SOURCE_LOST,
    (True, T.PRESENT): Step.GO_ON,
    (True, T.GREW): Step.GO_ON,
    (True, T.REPLACED): Reason.SOURCE_REPLACED,
}
"""What to do about the source. A missing one is not ours to make: a new sink waits for it."""

REACHES: dict[ReachSeen, Step | Reason] = {
    ReachSeen.FITS: Step.GO_ON,
    ReachSeen.REMOVED: Reason.RECORDS_REMOVED,
}
"""What to do about the records that the source still holds, if it is the recorded one."""

RECORDS: dict[RecordsSeen, Step | Reason] = {
    RecordsSeen.OURS: Step.GO_ON,
    RecordsSeen.OTHER_OWNER: Reason.OTHER_OWNER,
    RecordsSeen.NEWER_FORMAT: Reason.NEWER_FORMAT,
    RecordsSeen.NEWER_GENERATION: Reason.NEWER_GENERATION,
    RecordsSeen.GARBAGE: Reason.GARBAGE,
    RecordsSeen.BACKWARDS: Reason.BACKWARDS,
}
"""What to do about the records as such."""

SHAPES: dict[ShapeSeen, Step | Reason] = {
    ShapeSeen.FITS: Step.GO_ON,
    ShapeSeen.UNKNOWN: Step.WAIT,
    ShapeSeen.PARTITIONS: Reason.TOO_MANY_PARTITIONS,
    ShapeSeen.POLICY: Reason.NOT_COMPACTED,
}
"""What to do about the way a progress topic is made."""

PLACES: dict[ResourceSeen, Step | Reason] = {
    T.UNKNOWN: Step.WAIT,
    T.MISSING: Step.GO_ON,
    T.PRESENT: Step.GO_ON,
    T.GREW: Step.GO_ON,
    T.REPLACED: Reason.PROGRESS_REPLACED,
}
"""What to do about the progress topic that records stand in, compared with the one they were written to."""

CHECKPOINT_CELLS: dict[CheckpointUse, Step | Reason] = {
    CheckpointUse.CONTINUE: Step.GO_ON,
    CheckpointUse.RENEW: Step.GO_ON,
    CheckpointUse.PROGRESS_ROLLED_BACK: Reason.CHECKPOINT_AHEAD,
    CheckpointUse.STATE_LOST: Reason.STATE_LOST,
}
"""What to do about Spark's checkpoint, if there are records."""

ABOUT_PROGRESS = (
    Reason.PROGRESS_LOST,
    Reason.PROGRESS_EMPTIED,
    Reason.PROGRESS_EMPTIED_IN_PART,
    Reason.PROGRESS_ROLLED_BACK,
)
"""Reasons that concern the records whatever became of the output."""
