"""The phrases in which progress is told, the same in refusals, answers and reports; and those of others."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_sinks.core.progress.history import EARLIEST, History
from airflow_provider_sinks.core.progress.identity import Identity, ResourceKind
from airflow_provider_sinks.core.progress.witness import Witness

_SHOWN_PARTITIONS_MAX = 8
_LONGEST_LINE = 1000


def summary(history: History) -> str:
    """Return how far the records are, such as ``5,000 rows through epoch 12 of generation 1 (<time>)``."""
    if not history:
        return "no record"
    when = max(record.at for record in history.current.values())
    place = f"epoch {history.epoch} of generation {history.generation}"
    return f"{count(history.rows_ever, 'row')} through {place} ({when})"


def remembered(witness: Witness | None) -> str:
    """Return how far the witness says the sink is."""
    if witness is None:
        return "nothing"
    when = f" ({witness.at})" if witness.at else ""
    return (
        f"{count(witness.rows_ever, 'row')} through epoch {witness.epoch} of generation "
        f"{witness.generation}{when}"
    )


def offsets(positions: Mapping[int, int]) -> str:
    """Return positions by source partition, such as ``0: 120, 1: earliest``; shortened if there are many."""
    return _by_partition({p: "earliest" if at == EARLIEST else str(at) for p, at in positions.items()})


def ranges(gone: Mapping[int, tuple[int, int]]) -> str:
    """Return ranges [from, to) by source partition, such as ``0: 120 to 129``; shortened if many."""
    return _by_partition({partition: f"{begin} to {end - 1}" for partition, (begin, end) in gone.items()})


def count(number: int, what: str) -> str:
    """Return a number of things, such as ``1 partition`` or ``1,200 rows``."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def identity(resource: Identity, kind: ResourceKind = ResourceKind.TOPIC) -> str:
    """Return which resource it is, in one phrase."""
    size = f" and {count(resource.partitions, 'partition')}" if resource.partitions else ""
    return f'"{resource.name}" with id {resource.id}{size} in {kind.system} {resource.system}'


def visible(text: str, *, keep: str = "") -> str:
    r"""Return text in which nothing drives a terminal or hides: ``\x1b`` for what begins such a command.

    So a record, an error that quotes it, or a name from elsewhere is shown as what it is.

    :param keep: what is left as it is nevertheless.
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in keep else _written_out(one) for one in text)


def _written_out(character: str) -> str:
    return character.encode("unicode_escape").decode()


def one_line(text: str) -> str:
    """Return what somebody else wrote, on one line that can be printed; shortened if it is long."""
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}..."


def _by_partition(texts: Mapping[int, str]) -> str:
    shown = sorted(texts.items())[:_SHOWN_PARTITIONS_MAX]
    text = ", ".join(f"{partition}: {what}" for partition, what in shown)
    rest = len(texts) - len(shown)
    return f"{text} and {rest} more partitions" if rest else text
