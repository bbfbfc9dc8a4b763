"""What an error of Postgres comes of, by its SQLSTATE: a row, a moment, or what the tables are.

Python and PL/pgSQL judge rows alike.
"""

from __future__ import annotations

import re
from typing import Final

_OF_THE_SERVER: Final = "5[35-8]|72|XX"
OF_A_ROW: Final = f"^(2[123]|4[45]|54|P0|(?!{_OF_THE_SERVER})[5-9I-Z])"
"""One key twice, data, constraints; a view's check; limits; and whatever a trigger raises.

The SQL standard leaves classes that begin with 5 to 9 or I to Z to others. What of them is not the server's
own is of whoever wrote the trigger; so is 45, which it gives to nobody.
"""
OF_A_CAST: Final = "^(42601|XX000)$"
"""What some types, full texts and those of extensions, say about a text that they do not take."""

RAISED: Final = "P0001"
"""What PL/pgSQL raises where it is not told otherwise."""
_COLLISION: Final = "23505"
_OF_A_TABLE: Final = "55000"
"""What a table must have for a statement, such as a replica identity, or an index that is not deferrable."""
_OF_A_MOMENT: Final = f"^(?!{_OF_A_TABLE})(08|25|40|{_OF_THE_SERVER}|$)"
"""The connection, the transaction and its time, a deadlock, the server; and what has no state."""


def is_of_a_moment(state: str) -> bool:
    """Return whether the same statement may be taken at the next try."""
    return re.search(_OF_A_MOMENT, state) is not None


def is_of_a_row(state: str) -> bool:
    """Return whether a row may be the cause, so that others may be taken."""
    return re.search(OF_A_ROW, state) is not None


def is_for_good(state: str) -> bool:
    """Return whether a statement with no row of the sink in it is refused however often it is tried.

    What would be of a row elsewhere is of a trigger or a constraint there. Two who make one key at once may
    collide for a moment. Names, columns, indexes and rights are not meant: the next start looks at them.
    """
    return state == _OF_A_TABLE or (is_of_a_row(state) and state != _COLLISION)


def may_be_of_a_cast(state: str) -> bool:
    """Return whether a text that some type does not take may be the cause."""
    return re.search(OF_A_CAST, state) is not None
