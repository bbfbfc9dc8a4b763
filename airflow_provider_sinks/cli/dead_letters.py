"""``dead-letters``: lists and counts what a sink has set aside, shows one, and has some replayed.

Contents are shown as far as ``--mask`` lets them be; errors are shown as they are, and an error may quote a
value that did not fit its column.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from airflow_provider_sinks.cli.frame import (
    command,
    confirm,
    show,
    show_one,
    show_text,
    sink_homes,
    tell,
)
from airflow_provider_sinks.core.dead_letters.letter import Letter
from airflow_provider_sinks.core.dead_letters.mask import Mask, shown
from airflow_provider_sinks.core.dead_letters.replay import Selection
from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.lifecycle.replay import ReplayRequest, replayable
from airflow_provider_sinks.core.lifecycle.steps import StartRun
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.hooks.connections import resolve
from airflow_provider_sinks.lifecycle.verbs import SinkVerbs, spec_of

_ERROR_LENGTH = 100


@command
def list_letters(options: argparse.Namespace) -> None:
    """Show the newest letters."""
    with _letters(options) as (spec, letters, takes):
        found = letters.newest(options.limit, takes)
    if options.output in ("table", "plain"):
        show([_row(letter) for letter in found], options.output)
    else:
        selection = replayable(spec)
        show([_whole(letter, Mask.ALL, selection) for letter in found], options.output)


@command
def count(options: argparse.Namespace) -> None:
    """Show how many letters there are of each error."""
    with _letters(options) as (_, letters, takes):
        counted = Counter(_kind(letter) for letter in letters.all() if takes(letter))
    rows = [
        {"class": kind, "error": error, "letters": number, "came_back": back}
        for (kind, error), (number, back) in _by_error(counted)
    ]
    show(rows, options.output)


@command
def show_letter(options: argparse.Namespace) -> None:
    """Show one letter, as far as it may be seen."""
    place = _place(options.place)
    with _letters(options) as (spec, letters, _):
        found = letters.at(place)
    if found is None or not found.is_of(spec.name, spec.source_topic):
        problem = Problem(options.place, "holds no letter of this sink", "the list names the places")
        raise ConfigurationError(f'sink "{spec.name}" has no such dead letter', [problem])
    show_one(_whole(found, Mask(options.mask), replayable(spec)), options.output, in_lines=False)


@command
def replay(options: argparse.Namespace) -> None:
    """Say what a replay would take, and start the form that runs it."""
    ask = _request(options, overwrite=options.overwrite, forget=options.forget)
    with sink_homes(options) as homes:
        begun = SinkVerbs(homes, dry_run=True).replay(options.sink, ask)
        if begun.sink is None or options.dry_run:
            _show_plan(begun.plan.to_mapping(), str(begun.plan), options)
            return
        confirm(options)(begun.plan)
        step = StartRun(options.dag, _filled(options))
        homes.do(step)
    if options.output in ("table", "plain"):
        tell(f"done: {step}")
    _show_plan({**begun.plan.to_mapping(), "dag": options.dag}, begun.plan.what, options)


def _show_plan(data: dict[str, Any], text: str, options: argparse.Namespace) -> None:
    if options.output in ("table", "plain"):
        show_text(f"dry run: {text}" if options.dry_run else text)
    else:
        show_one({**data, "dry_run": options.dry_run}, options.output)


def _filled(options: argparse.Namespace) -> dict[str, Any]:
    """Return the fields of the form, as they were asked for; the plan was shown and agreed to here."""
    given = {name: getattr(options, name) for name in ("since", "before", "offsets")}
    return {
        "sink": options.sink,
        "error": "\n".join(options.error) or None,
        **{name: value or None for name, value in given.items()},
        "overwrite": options.overwrite,
        "forget": options.forget,
        "dry_run": False,
    }


@contextmanager
def _letters(options: argparse.Namespace) -> Iterator[tuple[SinkSpec, Any, Callable[[Letter], bool]]]:
    from airflow_provider_sinks.connectors.registry import end_types
    from airflow_provider_sinks.connectors.stored_letters import stored_letters

    selection = _request(options).selection
    with sink_homes(options) as homes:
        spec = spec_of(homes.one(options.sink))

    def takes(letter: Letter) -> bool:
        is_ours = letter.is_of(spec.name, spec.source_topic)
        return is_ours and selection.takes(letter, of_table=spec.letters_to_read is None)

    with stored_letters(spec, resolve(spec, end_types(spec))) as letters:
        yield spec, letters, takes


def _request(options: argparse.Namespace, **flags: bool) -> ReplayRequest:
    names = ("error", "since", "before", "offsets")
    given: dict[str, Any] = {name: getattr(options, name, None) for name in names}
    return ReplayRequest.parse(**given, **flags)


def _place(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,10}):(\d{1,18})", text)
    if match is None:
        problem = Problem(text, "is no place", "such as 0:120, as the list names them")
        raise ConfigurationError("it is not clear which letter to show", [problem])
    return int(match[1]), int(match[2])


def _row(letter: Letter) -> dict[str, Any]:
    origin = letter.origin
    source = "-" if origin.offset is None else f"{origin.topic}/{origin.partition}/{origin.offset}"
    return {
        "place": _placed(letter),
        "at": _time(letter.at_ms),
        "class": letter.error_class.value,
        "error": _short(letter.error),
        "source": source,
        "bytes": letter.left_out_bytes if letter.left_out_bytes is not None else len(letter.value or b""),
        "replays": origin.replays,
    }


def _whole(letter: Letter, mask: Mask, selection: Selection | None) -> dict[str, Any]:
    """Return all that a letter tells.

    :param selection: what can be replayed of its sink.
    """
    origin = letter.origin
    left_out = letter.left_out_bytes
    return {
        "place": _placed(letter),
        "at": _time(letter.at_ms),
        "class": letter.error_class.value,
        "error": letter.error,
        "source_topic": origin.topic,
        "source_partition": origin.partition,
        "source_offset": origin.offset,
        "source_timestamp": _time(origin.timestamp_ms),
        "key": shown(letter.key, mask),
        "value": f"<left out: {left_out:,} bytes>" if left_out is not None else shown(letter.value, mask),
        "headers": {name: shown(value, mask) for name, value in origin.headers},
        "sink": letter.sink or None,
        "generation": letter.generation,
        "epoch": letter.epoch,
        "spec_digest": letter.spec_digest or None,
        "replays": origin.replays,
        "can_be_replayed": selection is not None and letter.can_be_replayed and selection.takes(letter),
    }


def _kind(letter: Letter) -> tuple[str, str, bool]:
    return letter.error_class.value, _short(letter.error), letter.origin.replays > 0


def _by_error(counted: Counter[tuple[str, str, bool]]) -> list[tuple[tuple[str, str], tuple[int, int]]]:
    """Return class and error with how many letters there are, and how many of them came back; most first."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for (kind, error, is_back), number in counted.items():
        letters, back = found.get((kind, error), (0, 0))
        found[kind, error] = letters + number, back + number * is_back
    return sorted(found.items(), key=lambda item: (-item[1][0], item[0]))


def _placed(letter: Letter) -> str:
    return f"{letter.place[0]}:{letter.place[1]}"


def _time(at_ms: int | None) -> str | None:
    if at_ms is None:
        return None
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):  # no calendar has it
        return f"{at_ms} ms"


def _short(error: str) -> str:
    return error if len(error) <= _ERROR_LENGTH else f"{error[: _ERROR_LENGTH - 3]}..."
