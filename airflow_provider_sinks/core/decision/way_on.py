"""The ways on that a person may choose after a refusal: when each is open, and what it will do.

A way on is a one-time answer, not a setting: its code (:mod:`.accept`) fits exactly one situation and not the
next one. A standing option would one day answer a question nobody asked.

=========================  =================================================================================
way on                     what it does
=========================  =================================================================================
take_over                  make this Airflow the owner, resume from the records
adopt                      take the output that is there for the recorded one, resume from the records
go_on_changed              take the spec as it is now, resume from the records; rows before stay as they are
continue_without_output    make the missing output anew, resume from the records; old rows are not repeated
skip_lost                  resume where the source topic begins now; what was removed before is left out
resume_from_records        a new generation that starts where the records that are left end, writer by writer
resume_from_witness        a new generation that starts at the offsets Airflow remembers
start_over                 a new generation that starts where the spec says; rows in the target stay
=========================  =================================================================================
"""

from __future__ import annotations

import enum


class WayOn(enum.StrEnum):
    """What a person may choose, the least drastic first."""

    TAKE_OVER = "take_over"
    ADOPT = "adopt"
    GO_ON_CHANGED = "go_on_changed"
    CONTINUE_WITHOUT_OUTPUT = "continue_without_output"
    SKIP_LOST = "skip_lost"
    RESUME_FROM_RECORDS = "resume_from_records"
    RESUME_FROM_WITNESS = "resume_from_witness"
    START_OVER = "start_over"


RESET = (WayOn.RESUME_FROM_WITNESS, WayOn.START_OVER)
"""What settles records that cannot be gone on from."""
ROLLED_BACK = (WayOn.RESUME_FROM_RECORDS, *RESET)
"""What settles records that are older than they were: the rows may be, too."""
