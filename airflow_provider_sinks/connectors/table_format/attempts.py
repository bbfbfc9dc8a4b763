"""How often a change of a table is tried where others are first, and how long is waited in between."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

from airflow_provider_sinks.core.errors import UnavailableError

_ATTEMPTS = 30
_AGAIN_SECONDS = 0.05
_AGAIN_SECONDS_MAX = 2.0


def attempts(name: str) -> Iterator[None]:
    """Give an attempt after the other; whoever was not overtaken ends it.

    :param name: of the table.
    :raises UnavailableError: others are first again and again.
    """
    for attempt in range(_ATTEMPTS):
        yield
        wait = min(_AGAIN_SECONDS * 2**attempt, _AGAIN_SECONDS_MAX)
        time.sleep(wait * random.uniform(0.5, 1))  # noqa: S311  so that two do not meet again
    raise UnavailableError(
        f'table "{name}" could not be changed: others were first {_ATTEMPTS} times',
        "Each time its current snapshot was another one when the change was to be committed.",
        "See who else writes to it so often, and let them, or the sink, commit less often.",
    )
