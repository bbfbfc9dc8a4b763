"""What a cell of a decision table rules, where it does not refuse."""

from __future__ import annotations

import enum


class Ruling(enum.Enum):
    """What a start does about one thing that was seen."""

    WAIT = "wait until it can be seen"
    CREATE = "make the output, go on"
    TAKE = "go on with an output whose records, if any, nobody remembers writing"
    ADOPT = "go on with another output; nothing was written to the old one"
    GO_ON = "go on"
    GREW = "go on; keys move, because there are more partitions"
