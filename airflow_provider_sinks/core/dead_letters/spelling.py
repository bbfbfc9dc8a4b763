"""How a letter stands in the headers of a record, and in the row of a table.

Releases before this one wrote ``error``, the place in the source, key and value alone; such a letter is read
as one that tells no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from airflow_provider_sinks.core.dead_letters.headers import (
    SOURCE_HEADER,
    Headers,
    headers_from_json,
    text_headers,
    whole,
)
from airflow_provider_sinks.core.dead_letters.letter import Circumstances, ErrorClass, Letter, Origin

ROWS_HEADER = "record.rows"
"""Says that the record may have led to other rows too, which are written; absent where it has led to none."""
ROWS_COLUMN = "record_rows"
"""Says the same in a table, and also that there are none: a letter of an earlier release says neither."""
SEVERAL, NO_OTHERS = "several", "none"


def letter_headers(
    error: str, error_class: ErrorClass, origin: Origin, circumstances: Circumstances
) -> Headers:
    """Return the headers of a letter; those of the source record stand last."""
    return _headers(
        origin,
        error=error,
        error_class=error_class,
        sink=circumstances.sink,
        generation=circumstances.generation,
        epoch=circumstances.epoch,
        spec_digest=circumstances.spec_digest,
        rows=SEVERAL if circumstances.is_one_of_several(error_class) else None,
    )


def headers_of(letter: Letter) -> Headers:
    """Return the headers of a stored letter, as it was written; :func:`letter_of_record` reads them."""
    return _headers(
        letter.origin,
        error=letter.error,
        error_class=letter.error_class,
        sink=letter.sink,
        generation=letter.generation,
        epoch=letter.epoch,
        spec_digest=letter.spec_digest,
        rows=SEVERAL if letter.is_one_of_several else None,
    )


def _headers(origin: Origin, *, rows: str | None, **told: object) -> Headers:
    """Return the headers of a letter, those of its record last.

    :param told: by their names, with ``_`` for each dot.
    """
    own = {
        "error": told["error"],
        "error.class": told["error_class"],
        "source.topic": origin.topic,
        "source.partition": origin.partition,
        "source.offset": origin.offset,
        "source.timestamp": origin.timestamp_ms,
        "sink": told["sink"],
        "generation": told["generation"],
        "epoch": told["epoch"],
        "spec.digest": told["spec_digest"],
        "replays": origin.replays,
        ROWS_HEADER: rows,
    }
    mine = tuple((name, str(value).encode()) for name, value in own.items() if value is not None)
    return mine + tuple((f"{SOURCE_HEADER}{name}", value) for name, value in origin.headers)


def letter_of_record(
    place: tuple[int, int], at_ms: int, key: bytes | None, value: bytes | None, headers: Headers
) -> Letter:
    """Return the letter that a record of a topic is."""
    told = text_headers(headers)
    origin = Origin.of_letter(headers, "")
    return Letter(
        place,
        at_ms,
        told.get("error", ""),
        next((kind for kind in ErrorClass if kind == told.get("error.class")), None),
        replace(origin, replays=origin.replays - 1),
        key,
        value,
        told.get("sink", ""),
        whole(told.get("generation")),
        whole(told.get("epoch")),
        told.get("spec.digest", ""),
        (whole(told.get("value.bytes")) or 0) if "value.sha256" in told else None,
        ROWS_HEADER in told,
    )


def letter_of_row(place: tuple[int, int], row: Mapping[str, Any]) -> Letter:
    """Return the letter that the row of a table is; an earlier release made fewer columns.

    :param row: by the names of its columns; times know their zone, headers are JSON.
    """
    told_class = next((kind for kind in ErrorClass if kind == row.get("error_class")), None)
    has_led_to_none = (told_class or ErrorClass.of(row["error"])) is ErrorClass.PARSE
    origin = Origin(
        row["source_topic"] or "",
        row["source_partition"],
        row["source_offset"],
        _ms(row.get("source_timestamp")),
        headers_from_json(row.get("headers")),
        row.get("replays") or 0,
    )
    return Letter(
        place,
        _ms(row["at"]) or 0,
        row["error"],
        told_class,
        origin,
        row["key"],
        row["value"],
        row["sink"],
        row.get("generation"),
        row.get("epoch"),
        row.get("spec_digest") or "",
        is_one_of_several=not has_led_to_none and row.get(ROWS_COLUMN) != NO_OTHERS,
    )


def _ms(at: datetime | None) -> int | None:
    return None if at is None else round(at.timestamp() * 1000)
