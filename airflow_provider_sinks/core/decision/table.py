"""The table of the decision: what to do about an output, for each combination of what was seen.

The shorter tables stand with what they judge, in :mod:`.reasons`; :mod:`.decide` asks them all.
"""

from __future__ import annotations

from airflow_provider_sinks.core.decision.classify import ProgressState as P
from airflow_provider_sinks.core.decision.classify import ResourceState as R
from airflow_provider_sinks.core.decision.classify import WitnessState as W
from airflow_provider_sinks.core.decision.reasons.output import OutputReason
from airflow_provider_sinks.core.decision.reasons.progress import ProgressReason
from airflow_provider_sinks.core.decision.reasons.reason import Reason
from airflow_provider_sinks.core.decision.ruling import Ruling

DECISIONS: dict[tuple[P, R, W], Ruling | Reason] = {
    # progress could not be read: nothing can be decided
    (P.UNKNOWN, R.UNKNOWN, W.SILENT): Ruling.WAIT,
    (P.UNKNOWN, R.MISSING, W.SILENT): Ruling.WAIT,
    (P.UNKNOWN, R.PRESENT, W.SILENT): Ruling.WAIT,
    (P.UNKNOWN, R.GREW, W.SILENT): Ruling.WAIT,
    (P.UNKNOWN, R.REPLACED, W.SILENT): Ruling.WAIT,
    (P.UNKNOWN, R.UNKNOWN, W.AHEAD): Ruling.WAIT,
    (P.UNKNOWN, R.MISSING, W.AHEAD): Ruling.WAIT,
    (P.UNKNOWN, R.PRESENT, W.AHEAD): Ruling.WAIT,
    (P.UNKNOWN, R.GREW, W.AHEAD): Ruling.WAIT,
    (P.UNKNOWN, R.REPLACED, W.AHEAD): Ruling.WAIT,
    (P.UNKNOWN, R.UNKNOWN, W.TARGET): Ruling.WAIT,
    (P.UNKNOWN, R.MISSING, W.TARGET): Ruling.WAIT,
    (P.UNKNOWN, R.PRESENT, W.TARGET): Ruling.WAIT,
    (P.UNKNOWN, R.GREW, W.TARGET): Ruling.WAIT,
    (P.UNKNOWN, R.REPLACED, W.TARGET): Ruling.WAIT,
    # missing, or no record of this sink: a new sink and a lost progress place look the same
    (P.NONE, R.UNKNOWN, W.SILENT): Ruling.WAIT,
    (P.NONE, R.MISSING, W.SILENT): Ruling.CREATE,
    (P.NONE, R.PRESENT, W.SILENT): Ruling.TAKE,
    (P.NONE, R.GREW, W.SILENT): Ruling.TAKE,
    (P.NONE, R.REPLACED, W.SILENT): Ruling.TAKE,
    # ... unless Airflow remembers that rows were written, or the target that this sink has committed
    (P.NONE, R.UNKNOWN, W.AHEAD): ProgressReason.PROGRESS_LOST,
    (P.NONE, R.MISSING, W.AHEAD): ProgressReason.PROGRESS_LOST,
    (P.NONE, R.PRESENT, W.AHEAD): ProgressReason.PROGRESS_LOST,
    (P.NONE, R.GREW, W.AHEAD): ProgressReason.PROGRESS_LOST,
    (P.NONE, R.REPLACED, W.AHEAD): ProgressReason.PROGRESS_LOST,
    (P.NONE, R.UNKNOWN, W.TARGET): ProgressReason.PROGRESS_LOST,
    (P.NONE, R.MISSING, W.TARGET): ProgressReason.PROGRESS_LOST,
    (P.NONE, R.PRESENT, W.TARGET): ProgressReason.PROGRESS_LOST,
    (P.NONE, R.GREW, W.TARGET): ProgressReason.PROGRESS_LOST,
    (P.NONE, R.REPLACED, W.TARGET): ProgressReason.PROGRESS_LOST,
    # something was here
    (P.EMPTIED, R.UNKNOWN, W.SILENT): ProgressReason.PROGRESS_EMPTIED,
    (P.EMPTIED, R.MISSING, W.SILENT): ProgressReason.PROGRESS_EMPTIED,
    (P.EMPTIED, R.PRESENT, W.SILENT): ProgressReason.PROGRESS_EMPTIED,
    (P.EMPTIED, R.GREW, W.SILENT): ProgressReason.PROGRESS_EMPTIED,
    (P.EMPTIED, R.REPLACED, W.SILENT): ProgressReason.PROGRESS_EMPTIED,
    (P.EMPTIED, R.UNKNOWN, W.AHEAD): ProgressReason.PROGRESS_LOST,
    (P.EMPTIED, R.MISSING, W.AHEAD): ProgressReason.PROGRESS_LOST,
    (P.EMPTIED, R.PRESENT, W.AHEAD): ProgressReason.PROGRESS_LOST,
    (P.EMPTIED, R.GREW, W.AHEAD): ProgressReason.PROGRESS_LOST,
    (P.EMPTIED, R.REPLACED, W.AHEAD): ProgressReason.PROGRESS_LOST,
    (P.EMPTIED, R.UNKNOWN, W.TARGET): ProgressReason.PROGRESS_EMPTIED,
    (P.EMPTIED, R.MISSING, W.TARGET): ProgressReason.PROGRESS_EMPTIED,
    (P.EMPTIED, R.PRESENT, W.TARGET): ProgressReason.PROGRESS_EMPTIED,
    (P.EMPTIED, R.GREW, W.TARGET): ProgressReason.PROGRESS_EMPTIED,
    (P.EMPTIED, R.REPLACED, W.TARGET): ProgressReason.PROGRESS_EMPTIED,
    # some of it still is
    (P.IN_PART, R.UNKNOWN, W.SILENT): ProgressReason.PROGRESS_EMPTIED_IN_PART,
    (P.IN_PART, R.MISSING, W.SILENT): ProgressReason.PROGRESS_EMPTIED_IN_PART,
    (P.IN_PART, R.PRESENT, W.SILENT): ProgressReason.PROGRESS_EMPTIED_IN_PART,
    (P.IN_PART, R.GREW, W.SILENT): ProgressReason.PROGRESS_EMPTIED_IN_PART,
    (P.IN_PART, R.REPLACED, W.SILENT): ProgressReason.PROGRESS_EMPTIED_IN_PART,
    (P.IN_PART, R.UNKNOWN, W.AHEAD): ProgressReason.PROGRESS_ROLLED_BACK,
    (P.IN_PART, R.MISSING, W.AHEAD): ProgressReason.PROGRESS_ROLLED_BACK,
    (P.IN_PART, R.PRESENT, W.AHEAD): ProgressReason.PROGRESS_ROLLED_BACK,
    (P.IN_PART, R.GREW, W.AHEAD): ProgressReason.PROGRESS_ROLLED_BACK,
    (P.IN_PART, R.REPLACED, W.AHEAD): ProgressReason.PROGRESS_ROLLED_BACK,
    (P.IN_PART, R.UNKNOWN, W.TARGET): ProgressReason.PROGRESS_EMPTIED_IN_PART,
    (P.IN_PART, R.MISSING, W.TARGET): ProgressReason.PROGRESS_EMPTIED_IN_PART,
    (P.IN_PART, R.PRESENT, W.TARGET): ProgressReason.PROGRESS_EMPTIED_IN_PART,
    (P.IN_PART, R.GREW, W.TARGET): ProgressReason.PROGRESS_EMPTIED_IN_PART,
    (P.IN_PART, R.REPLACED, W.TARGET): ProgressReason.PROGRESS_EMPTIED_IN_PART,
    # a record, nothing written: the output may come and go
    (P.UNWRITTEN, R.UNKNOWN, W.SILENT): Ruling.WAIT,
    (P.UNWRITTEN, R.MISSING, W.SILENT): Ruling.CREATE,
    (P.UNWRITTEN, R.PRESENT, W.SILENT): Ruling.GO_ON,
    (P.UNWRITTEN, R.GREW, W.SILENT): Ruling.GREW,
    (P.UNWRITTEN, R.REPLACED, W.SILENT): Ruling.ADOPT,
    (P.UNWRITTEN, R.UNKNOWN, W.AHEAD): ProgressReason.PROGRESS_ROLLED_BACK,
    (P.UNWRITTEN, R.MISSING, W.AHEAD): ProgressReason.PROGRESS_ROLLED_BACK,
    (P.UNWRITTEN, R.PRESENT, W.AHEAD): ProgressReason.PROGRESS_ROLLED_BACK,
    (P.UNWRITTEN, R.GREW, W.AHEAD): ProgressReason.PROGRESS_ROLLED_BACK,
    (P.UNWRITTEN, R.REPLACED, W.AHEAD): ProgressReason.PROGRESS_ROLLED_BACK,
    # ... a record is there, so the target need not be asked what it remembers: as if it were silent
    (P.UNWRITTEN, R.UNKNOWN, W.TARGET): Ruling.WAIT,
    (P.UNWRITTEN, R.MISSING, W.TARGET): Ruling.CREATE,
    (P.UNWRITTEN, R.PRESENT, W.TARGET): Ruling.GO_ON,
    (P.UNWRITTEN, R.GREW, W.TARGET): Ruling.GREW,
    (P.UNWRITTEN, R.REPLACED, W.TARGET): Ruling.ADOPT,
    # a record, something written: the output must be the one it was written to
    (P.WRITTEN, R.UNKNOWN, W.SILENT): Ruling.WAIT,
    (P.WRITTEN, R.MISSING, W.SILENT): OutputReason.OUTPUT_LOST,
    (P.WRITTEN, R.PRESENT, W.SILENT): Ruling.GO_ON,
    (P.WRITTEN, R.GREW, W.SILENT): Ruling.GREW,
    (P.WRITTEN, R.REPLACED, W.SILENT): OutputReason.OUTPUT_REPLACED,
    (P.WRITTEN, R.UNKNOWN, W.AHEAD): ProgressReason.PROGRESS_ROLLED_BACK,
    (P.WRITTEN, R.MISSING, W.AHEAD): ProgressReason.PROGRESS_ROLLED_BACK,
    (P.WRITTEN, R.PRESENT, W.AHEAD): ProgressReason.PROGRESS_ROLLED_BACK,
    (P.WRITTEN, R.GREW, W.AHEAD): ProgressReason.PROGRESS_ROLLED_BACK,
    (P.WRITTEN, R.REPLACED, W.AHEAD): ProgressReason.PROGRESS_ROLLED_BACK,
    (P.WRITTEN, R.UNKNOWN, W.TARGET): Ruling.WAIT,
    (P.WRITTEN, R.MISSING, W.TARGET): OutputReason.OUTPUT_LOST,
    (P.WRITTEN, R.PRESENT, W.TARGET): Ruling.GO_ON,
    (P.WRITTEN, R.GREW, W.TARGET): Ruling.GREW,
    (P.WRITTEN, R.REPLACED, W.TARGET): OutputReason.OUTPUT_REPLACED,
}
"""What to do about an output: data, and dead letters in their own right."""
