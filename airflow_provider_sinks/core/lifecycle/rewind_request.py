"""Where a person wants a sink to go back to, as operators, forms and commands take it: one of three ways.

>>> RewindRequest.parse(offsets="0:120, 1:earliest").offsets
{0: 120, 1: -2}
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from airflow_provider_sinks.core.errors import ConfigurationError, Problem, nearest
from airflow_provider_sinks.core.lifecycle.rewind import LATEST
from airflow_provider_sinks.core.progress.history import EARLIEST

_ENDS = {"earliest": EARLIEST, "latest": LATEST}
_OFFSETS = "such as 0:120, 1:earliest"


@dataclass(frozen=True)
class RewindRequest:
    """One place to go back to.

    :param offsets: by source partition.
    :param time_ms: milliseconds since 1970.
    :param time: the same as it was written.
    :param epoch: the first that is written again.
    :param generation: of that epoch; ``None`` for the newest.
    :param skip: offsets may lie ahead.
    """

    offsets: Mapping[int, int] | None = None
    time_ms: int | None = None
    time: str = ""
    epoch: int | None = None
    generation: int | None = None
    skip: bool = False

    @classmethod
    def parse(
        cls,
        *,
        offsets: Any = None,
        time: Any = None,
        epoch: Any = None,
        generation: Any = None,
        skip: bool = False,
    ) -> RewindRequest:
        """Read what was asked for; an empty text is nothing, as in a form.

        :param offsets: a mapping, or text such as ``0:120, 1:earliest``.
        :param time: ISO 8601 with the zone, such as ``2026-11-20T22:00:00Z``.
        :raises ConfigurationError: with all problems.
        """
        given = {"offsets": offsets, "time": time, "epoch": epoch}
        named = [name for name, value in given.items() if value not in (None, "", {})]
        problems: list[Problem] = []
        if len(named) != 1:
            which = f"{' and '.join(named)} are given" if named else "none is given"
            problems.append(Problem("offsets, time, epoch", which, "give exactly one"))
        ask = cls(
            offsets=_offsets(offsets, problems) if "offsets" in named else None,
            time_ms=time_in_ms(time, problems) if "time" in named else None,
            time=str(time or ""),
            epoch=_count("epoch", epoch, problems) if "epoch" in named else None,
            generation=_count("generation", generation, problems) if generation not in (None, "") else None,
            skip=skip,
        )
        if ask.generation is not None and "epoch" not in named:
            problems.append(Problem("generation", "says nothing without an epoch"))
        if skip and "offsets" not in named:
            problems.append(Problem("skip", "says nothing without offsets"))
        if problems:
            raise ConfigurationError("it is not clear where to rewind to", problems)
        return ask


def _offsets(given: Any, problems: list[Problem]) -> dict[int, int]:
    pairs = given.items() if isinstance(given, Mapping) else _pairs(str(given))
    found: dict[int, int] = {}
    for partition, at in pairs:
        end = _ENDS.get(str(at).strip().lower())
        if not re.fullmatch(r"\d{1,9}", str(partition).strip()):
            problems.append(Problem("offsets", f"{partition!r} is not a source partition", _OFFSETS))
        elif int(partition) in found:
            problems.append(Problem(f"offsets.{int(partition)}", "is given twice"))
        elif end is None and not re.fullmatch(r"\d{1,18}", str(at).strip()):
            hint = nearest(str(at), _ENDS) or _OFFSETS
            problems.append(Problem(f"offsets.{partition}", f"{at!r} is not an offset", hint))
        else:
            found[int(partition)] = int(at) if end is None else end
    return found


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for part in filter(None, re.split(r"[,\s]+(?=\d+\s*[:=])|,", text.strip())):
        partition, _, at = part.strip().replace("=", ":").partition(":")
        yield partition, at


def offset_ranges(given: Any, problems: list[Problem]) -> dict[int, tuple[int, int]]:
    """Read offsets of some partitions, such as ``0:120-140, 1:7``: from the first to the last, both taken.

    :returns: by partition, the first offset and the one behind the last.
    """
    found: dict[int, tuple[int, int]] = {}
    for part in filter(None, re.split(r"[,\s]+", str(given).strip())):
        match = re.fullmatch(r"(\d{1,9})[:=](\d{1,18})(?:-(\d{1,18}))?", part)
        if match is None or int(match[3] or match[2]) < int(match[2]):
            problems.append(Problem("offsets", f"{part!r} is no range of offsets", "such as 0:120-140, 1:7"))
        elif int(match[1]) in found:
            problems.append(Problem(f"offsets.{match[1]}", "is given twice"))
        else:
            found[int(match[1])] = int(match[2]), int(match[3] or match[2]) + 1
    return found


def time_in_ms(given: Any, problems: list[Problem], name: str = "time") -> int | None:
    """Read ISO 8601 with a zone, as milliseconds since 1970.

    :param name: the option, for a problem.
    """
    try:
        moment = given if isinstance(given, datetime) else datetime.fromisoformat(str(given).strip())
    except ValueError:
        problems.append(Problem(name, f"{given!r} is not a time", "such as 2026-11-20T22:00:00Z"))
        return None
    if moment.tzinfo is None:
        problems.append(Problem(name, f"{given!s} has no zone", f"such as {given!s}Z, or {given!s}+01:00"))
        return None
    return int(moment.timestamp() * 1000)


def _count(name: str, given: Any, problems: list[Problem]) -> int | None:
    if isinstance(given, bool) or not re.fullmatch(r"\d{1,18}", str(given).strip()) or int(given) < 1:
        problems.append(Problem(name, f"{given!r} is not one", "a number from 1"))
        return None
    return int(given)
