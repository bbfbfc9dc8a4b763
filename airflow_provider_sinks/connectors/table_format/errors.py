"""What a table answers that is no error of a sink yet: whoever asked knows what it means there."""

from __future__ import annotations


class MissingError(Exception):
    """There is no such table, or namespace, or the catalog is still empty."""


class HiddenError(Exception):
    """This login may not see, or change, what it was asked for."""


class OvertakenError(Exception):
    """Somebody else has changed the table since it was loaded: nothing was committed."""


class ElsewhereError(Exception):
    """Files were staged for another table than this one: it takes those in its folder, or of its columns."""
