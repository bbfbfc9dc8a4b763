"""What a change of an option bears on: the classes of change, with the reason of each. Pure data.

An option has one bearing, in the table of :mod:`.options` or in :attr:`.SinkSpec.bearings` of its target. A
change *goes on* where the same generation may take it: the rows from its offset on follow the new spec, and
those before stay as they are. It *needs a new generation* where rows of both specs in one output would be
wrong together, or where what is recorded means nothing under the new spec.
"""

from __future__ import annotations

import enum
from typing import NamedTuple


class When(enum.Enum):
    """When a change needs a new generation."""

    NEVER = "never"
    ALWAYS = "always"
    WRITTEN = "rows were written"
    KEYED = "rows were written, and rows of one key replace each other"
    SET_ASIDE = "dead letters were written"
    HAS_STATE = "the query keeps state, or kept it"


class Meaning(NamedTuple):
    """What a change means.

    :param needs: when it needs a new generation.
    :param goes_on: what it means otherwise.
    :param why: why it needs one.
    :param by_ids: the start compares the ids of what is there with the recorded ones anyway, and refuses by
        them: nothing else has to stop it.
    """

    needs: When
    goes_on: str = ""
    why: str = ""
    by_ids: bool = False


_FROM_HERE = "rows from here on follow it, those before stay as they are"
_NOTHING_WRITTEN = "nothing was written so far"


@enum.unique
class Bearing(Meaning, enum.Enum):
    """What a change of an option bears on."""

    RUN = Meaning(When.NEVER, "it changes no row")
    BEGINNING = Meaning(When.NEVER, "it counts where a generation begins")
    MAKING = Meaning(When.NEVER, "it counts where an output is made: one that is there stays as it is")
    ROWS = Meaning(When.NEVER, _FROM_HERE)
    REGISTERED = Meaning(
        When.NEVER, f"{_FROM_HERE}; the registry is asked whether the schema may follow the one before"
    )
    NEW_COLUMNS = Meaning(When.NEVER, "rows before have nothing there, or the default of the table")
    PLACE = Meaning(
        When.NEVER,
        "what it leads to must be what is recorded: the start compares the ids, and refuses another one",
        by_ids=True,
    )
    READING = Meaning(
        When.HAS_STATE,
        _FROM_HERE,
        "the state in Spark's checkpoint was made of rows that were read and computed in another way",
    )
    CHANGES = Meaning(
        When.KEYED, _FROM_HERE, "what the records before would have taken away, or replaced, is still there"
    )
    KEY = Meaning(
        When.KEYED,
        f"{_FROM_HERE}; rows that were together by the old key are so no more",
        "rows that were written by the old key are never replaced or deleted again",
    )
    FORM = Meaning(
        When.WRITTEN, _NOTHING_WRITTEN, "whoever reads what is there would meet rows of two forms in it"
    )
    LOST_COLUMNS = Meaning(
        When.WRITTEN, _NOTHING_WRITTEN, "rows from here on have nothing there, beside rows that have"
    )
    IDS = Meaning(
        When.WRITTEN,
        _NOTHING_WRITTEN,
        "what was written holds ids of schemas, which are others in another registry; whether it is the "
        "same one cannot be told",
    )
    SOURCE = Meaning(When.ALWAYS, why="the offsets of one source mean nothing in another", by_ids=True)
    OUTPUT = Meaning(When.WRITTEN, _NOTHING_WRITTEN, "what was written stays in the old one", by_ids=True)
    LETTERS = Meaning(
        When.SET_ASIDE, "nothing was set aside so far", "what was set aside stays in the old one", by_ids=True
    )
    PROGRESS = Meaning(When.ALWAYS, why="the progress stands in the old one", by_ids=True)
    SINK = Meaning(When.ALWAYS, why="it is another sink, with a progress of its own")
    UNSAID = Meaning(
        When.WRITTEN, _NOTHING_WRITTEN, "the connector of the target does not say what its change means"
    )
