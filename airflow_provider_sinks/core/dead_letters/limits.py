"""How many records an epoch may set aside before that is a mistake of the sink, not of its records. Pure.

It is judged by each writer before its commit, so what is too much is never committed: the records are read
again by the next start. With one writer per source partition each judges its own part of the epoch, and
others may have committed theirs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from airflow_provider_sinks.core.errors import RefusedError

RATIO_COUNTS_FROM = 10
"""A ratio says nothing about a few: it is judged from so many dead letters on."""
_ERRORS_SHOWN = 3
_ERROR_LENGTH = 200


@dataclass(frozen=True)
class SetAsideLimits:
    """The limits of a spec; ``None`` is none.

    :param max_per_epoch: dead letters of one writer in one epoch.
    :param max_ratio: of the source records of a writer in an epoch, from 0 to 1, what is set aside.
    """

    max_per_epoch: int | None = None
    max_ratio: float | None = None

    def exceeded(self, records: int, dead: int) -> str:
        """Say which limit is exceeded; empty for none.

        :param records: of the source that the writer has gone through, whatever the query made of them.
        :param dead: set aside.
        """
        if self.max_per_epoch is not None and dead > self.max_per_epoch:
            return f"max_per_epoch is {self.max_per_epoch:,}"
        ratio = dead / max(records, dead) if dead else 0.0
        if self.max_ratio is not None and dead >= RATIO_COUNTS_FROM and ratio > self.max_ratio:
            return f"max_ratio is {self.max_ratio:g}, and this is {ratio:.3f}"
        return ""


class SetAsideError(RefusedError):
    """An epoch sets more aside than the spec allows; the writer that says so commits nothing of it."""


def too_many(
    sink: str, place: str, counted: tuple[int, int, int], why: str, errors: Counter[str]
) -> SetAsideError:
    """Return the refusal: counts, the commonest errors, and the ways on.

    :param place: what was read, such as ``epoch 3, source "clicks", offsets 0: 100 to 2,000``.
    :param counted: source records that were gone through, those that would be set aside, and those of them
        that are committed already, with an earlier part of a long epoch.
    :param why: the limit that is exceeded.
    :param errors: how often each error stands there, as far as they were seen before the target's own.
    """
    records, dead, committed = counted
    common = [
        f"{number:,} times: {error[:_ERROR_LENGTH]}" for error, number in errors.most_common(_ERRORS_SHOWN)
    ]
    shown = f" Errors: {'; '.join(common)}" if common else ""
    return SetAsideError(
        f'sink "{sink}" would set aside {dead:,} of {max(records, dead):,} records at once',
        f"In {place}; dead_letter.{why}. {_committed(committed)}{shown}",
        "Mend the schema or the query and start the sink again: it reads the same records once more. If the "
        "records are bad indeed, raise dead_letter.max_per_epoch and max_ratio, or leave them out: then they "
        "are set aside, and can be replayed later.",
    )


def _committed(letters: int) -> str:
    return f"The first {letters:,} of them are committed." if letters else "None of them is committed."
