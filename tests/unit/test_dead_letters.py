"""Dead letters: what they tell, how many are too many, which of them a replay takes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_sinks.connectors import rows as columns
from airflow_provider_sinks.connectors.kafka.dead_letters import DeadLetterRecord
from airflow_provider_sinks.connectors.letter_rows import LetterRows
from airflow_provider_sinks.connectors.table_format.letters import DEAD_LETTER_COLUMNS
from airflow_provider_sinks.core.dead_letters.headers import Headers, headers_from_json, headers_to_json
from airflow_provider_sinks.core.dead_letters.letter import Circumstances, ErrorClass, Letter, Origin
from airflow_provider_sinks.core.dead_letters.limits import RATIO_COUNTS_FROM, SetAsideLimits, too_many
from airflow_provider_sinks.core.dead_letters.mask import Mask, shown
from airflow_provider_sinks.core.dead_letters.replay import (
    Replay,
    Selection,
    Taken,
    merged,
    replay_of,
    within,
)
from airflow_provider_sinks.core.dead_letters.spelling import (
    headers_of,
    letter_headers,
    letter_of_record,
    letter_of_row,
)
from airflow_provider_sinks.core.errors import ConfigurationError, RefusedError
from airflow_provider_sinks.core.lifecycle.replay import (
    ReplayRequest,
    demand_announced,
    replayable,
    replaying_sink,
)
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.lifecycle.replays import CountedLetters

SOURCE = {"connection": "k", "topic": "clicks", "schema": "id int", "start": "latest"}
KAFKA = {
    "name": "orders",
    "source": {"kafka": SOURCE},
    "target": {"kafka": {"connection": "t", "topic": "out"}},
    "trigger": {"every": "1s"},
    "dead_letter": {"topic": "dlq", "max_per_epoch": 5, "max_ratio": 0.5},
}
HEADERS: Headers = (("trace", b"\x00\xff"), ("none", None), ("trace", b"2"))
DIGESTED: Headers = (("source.offset", b"7"), ("value.bytes", b"99"), ("value.sha256", b"0"))


def letter(headers: Headers, **more: Any) -> Any:
    return letter_of_record((0, 5), 1_000, b"k", more.get("value", b"v"), headers)


def test_a_letter_says_what_it_was_written_with() -> None:
    told = Circumstances("orders", "clicks", 2, 7, "digest")

    found = letter(letter_headers("no", ErrorClass.REFUSED, told.origin(3, 12, 99, HEADERS), told))

    assert (found.error, found.told_class, found.sink) == ("no", ErrorClass.REFUSED, "orders")
    assert (found.generation, found.epoch, found.spec_digest) == (2, 7, "digest")
    assert found.origin == told.origin(3, 12, 99, HEADERS)
    assert (found.key, found.value, found.left_out_bytes) == (b"k", b"v", None)


@pytest.mark.parametrize("kind", ErrorClass)
def test_a_row_beside_others_of_its_record_is_not_replayed(kind: ErrorClass) -> None:
    told = Circumstances("orders", "clicks", may_multiply=True)

    found = letter(letter_headers("no", kind, told.origin(3, 12, 99, HEADERS), told))

    assert found.can_be_replayed is (kind is ErrorClass.PARSE)


def test_a_letter_that_comes_back_is_about_the_first_record_and_counts() -> None:
    told = Circumstances("orders", "clicks", 1, 1, "first")
    first = letter_headers("no", ErrorClass.PARSE, told.origin(3, 12, 99, HEADERS), told)
    again = Circumstances("orders", "clicks", 4, 2, "second", is_replay=True)

    back = letter(letter_headers("still no", ErrorClass.PARSE, again.origin(0, 777, 5, first), again))

    assert (back.origin.partition, back.origin.offset, back.origin.timestamp_ms) == (3, 12, 99)
    assert (back.origin.headers, back.origin.replays, back.error) == (HEADERS, 1, "still no")
    assert back.spec_digest == "second"


def test_a_letter_of_the_release_before_is_read() -> None:
    told: Headers = (
        ("error", b"The value is not JSON."),
        ("source.topic", b"clicks"),
        ("source.partition", b"1"),
        ("source.offset", b"8"),
    )

    found = letter(told)

    assert (found.error_class, found.told_class, found.origin.replays) == (ErrorClass.PARSE, None, 0)
    assert found.is_of("orders", "clicks")
    assert not found.is_of("orders", "others")
    assert found.can_be_replayed


@pytest.mark.parametrize("headers", [DIGESTED, (("error", b"x"),)])
def test_what_is_no_whole_record_of_one_place_cannot_be_replayed(headers: Headers) -> None:
    assert not letter(headers, value=None).can_be_replayed


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("The value is empty.", ErrorClass.PARSE),
        ('Topic "a" does not take the row. It has 7 bytes', ErrorClass.TOO_LARGE),
        ("column id: 99999 does not fit smallint", ErrorClass.CONVERT),
        ("column note: two\nlines does not fit varchar", ErrorClass.CONVERT),
        ("key column id is null", ErrorClass.CONVERT),
        ('null value in column "a" violates not-null constraint', ErrorClass.REFUSED),
        ("", ErrorClass.REFUSED),
    ],
)
def test_the_class_of_an_error_is_known_by_its_words(error: str, kind: ErrorClass) -> None:
    assert ErrorClass.of(error) is kind


def test_headers_survive_a_column_of_text() -> None:
    assert headers_from_json(headers_to_json(HEADERS)) == HEADERS
    assert headers_from_json(None) == ()


@pytest.mark.parametrize(
    ("limits", "records", "dead", "which"),
    [
        (SetAsideLimits(), 0, 1_000_000, ""),
        (SetAsideLimits(max_per_epoch=3), 0, 3, ""),
        (SetAsideLimits(max_per_epoch=3), 1_000, 4, "max_per_epoch is 3"),
        (SetAsideLimits(max_per_epoch=0), 5, 1, "max_per_epoch is 0"),
        (SetAsideLimits(max_ratio=0.5), 0, RATIO_COUNTS_FROM - 1, ""),
        (SetAsideLimits(max_ratio=0.5), 0, RATIO_COUNTS_FROM, "max_ratio is 0.5, and this is 1.000"),
        (SetAsideLimits(max_ratio=0.5), 2 * RATIO_COUNTS_FROM, RATIO_COUNTS_FROM, ""),
        (SetAsideLimits(max_ratio=0.5), 21, 11, "max_ratio is 0.5, and this is 0.524"),
        (SetAsideLimits(max_ratio=0.5), 0, 0, ""),
    ],
)
def test_a_limit_is_exceeded_by_one_more(limits: SetAsideLimits, records: int, dead: int, which: str) -> None:
    assert limits.exceeded(records, dead) == which


def test_too_many_letters_are_a_refusal_with_counts_and_ways_on() -> None:
    errors = Counter({"b": 2, "a": 5, "c": 1, "d": 1})

    refusal = too_many("orders", "epoch 3", (16, 9, 0), "max_per_epoch is 8", errors)

    assert isinstance(refusal, RefusedError)
    assert not refusal.retryable
    assert str(refusal).startswith('sink "orders" would set aside 9 of 16 records at once')
    assert "None of them is committed." in refusal.detail
    assert "5 times: a; 2 times: b; 1 times: c" in refusal.detail
    assert "max_per_epoch and max_ratio" in refusal.hint
    late = too_many("orders", "epoch 3", (1_600, 9, 7), "max_per_epoch is 8", errors)
    assert "The first 7 of them are committed." in late.detail


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("The value is not JSON.", ErrorClass.PARSE),
        ("The key is not UTF-8.", ErrorClass.PARSE),
        ("whatever Spark says of a value", ErrorClass.PARSE),
        ("The value cannot be written: field a is null", ErrorClass.CONVERT),
        ("The key cannot be written: field a is null", ErrorClass.CONVERT),
        ("column my col: 1.5 does not fit", ErrorClass.CONVERT),
        ("key column my col is null", ErrorClass.CONVERT),
        ("partition column day is an empty text, which reads as null", ErrorClass.CONVERT),
        ("partition column day is beyond the years 1 to 9999, which no reader takes", ErrorClass.CONVERT),
    ],
)
def test_an_error_that_comes_with_a_row_is_of_its_record_or_of_its_conversion(
    error: str, kind: ErrorClass
) -> None:
    assert ErrorClass.of_row(error) is kind


def test_a_letter_weighs_what_it_has_with_its_headers() -> None:
    letter = DeadLetterRecord(b"key", b"value", (("name", b"told"), ("none", None)))

    assert letter.size_bytes == 3 + 5 + 4 + 4 + 4


@pytest.mark.parametrize("kind", ErrorClass)
@pytest.mark.parametrize("may_multiply", [True, False])
def test_a_table_tells_what_headers_tell(kind: ErrorClass, may_multiply: bool) -> None:
    names = (columns.PARTITION, columns.OFFSET, columns.ERROR, *columns.RAW)
    error = {ErrorClass.PARSE: "The value is empty.", ErrorClass.CONVERT: "column a: no"}.get(kind, "no")
    row = dict(zip(names, (3, 12, error, b"k", b"v", 99_000, headers_to_json(HEADERS)), strict=True))
    told = Circumstances("orders", "clicks", 2, 7, "digest", may_multiply=may_multiply)
    letters = LetterRows(tuple(DEAD_LETTER_COLUMNS), told)

    of_target = kind in {ErrorClass.REFUSED, ErrorClass.TOO_LARGE}
    stored = letters.of(pa.RecordBatch.from_pylist([row]), is_of_target=of_target).to_pylist()[0]
    found = letter_of_row((0, 5), stored)

    assert found.is_one_of_several is (may_multiply and kind is not ErrorClass.PARSE)
    again = letter_of_record((0, 5), found.at_ms, found.key, found.value, headers_of(found))
    assert again == found
    assert (again.identity, again.origin) == (found.identity, told.origin(3, 12, 99_000, HEADERS))


@pytest.mark.parametrize(("kind", "can"), [("parse", True), ("refused", False), ("convert", False)])
def test_of_a_table_that_does_not_tell_of_other_rows_only_what_did_not_parse_is_replayed(
    kind: str, can: bool
) -> None:
    row = {
        "source_topic": "clicks", "source_partition": 0, "source_offset": 1, "at": datetime.now(UTC),
        "error": "x", "error_class": kind, "key": None, "value": b"v", "sink": "orders",
    }  # fmt: skip

    assert letter_of_row((0, 1), row).can_be_replayed is can


@pytest.mark.parametrize("at_ms", [None, 1_700_000_000_000_000, -(10**17)])
def test_a_time_that_no_calendar_has_is_left_out_of_a_letter(
    at_ms: int | None,
) -> None:
    names = (columns.PARTITION, columns.OFFSET, columns.ERROR, *columns.RAW)
    row = dict(zip(names, (0, 1, "bad", None, b"value", at_ms, None), strict=True))
    letters = LetterRows(("source_timestamp", "source_offset"), Circumstances("orders", "raw"))

    found = letters.of(pa.RecordBatch.from_pylist([row]), is_of_target=False)

    assert found.to_pylist() == [{"source_timestamp": None, "source_offset": 1}]


@pytest.mark.parametrize(
    ("option", "value"),
    [("max_per_epoch", -1), ("max_per_epoch", "5"), ("max_ratio", 0), ("max_ratio", 1), ("max_ratio", 2.5)],
)
def test_limits_that_make_no_sense_are_refused(option: str, value: object) -> None:
    with pytest.raises(ConfigurationError, match=f"dead_letter.{option}"):
        SinkSpec.parse({**KAFKA, "dead_letter": {"topic": "dlq", option: value}})


def test_the_values_of_json_are_masked_and_its_shape_stays() -> None:
    secret = b'{"id": 7, "ok": true, "no": null, "name": "Ann", "more": [{"pin": "1234"}]}'

    masked = shown(secret, Mask.VALUES)

    assert masked == (
        '{"id": "<number>", "ok": "<boolean>", "no": null, "name": "<text of 3>", '
        '"more": [{"pin": "<text of 4>"}]}'
    )
    assert shown(b"Ann 1234", Mask.VALUES) == "<8 bytes>"
    assert "Ann" not in str(shown(b"Ann", Mask.ALL))
    assert (shown(b"Ann", Mask.NONE), shown(b"\xff", Mask.NONE), shown(None, Mask.ALL)) == (
        "Ann",
        "0xff",
        None,
    )


def taken(below: int, *errors: str) -> Taken:
    return Taken(selection=Selection(errors=errors), below={0: below})


def one_letter(error: str = "The value is empty.", kind: ErrorClass | None = None, offset: int = 5) -> Letter:
    """Return a letter of the third record of the source's partition 1."""
    return Letter((0, offset), 1_000, error, kind, Origin("clicks", 1, 3), None, b"v")


def takes(replay: Replay, offset: int, error: str = "The value is empty.") -> bool:
    return replay.takes(one_letter(error, offset=offset))


@pytest.mark.parametrize(
    ("selection", "fits"),
    [
        ({}, True),
        ({"errors": ("parse",)}, True),
        ({"errors": ("refused", "is empty")}, True),
        ({"errors": ("refused",)}, False),
        ({"since_ms": 1_000, "before_ms": 1_001}, True),
        ({"since_ms": 1_001}, False),
        ({"before_ms": 1_000}, False),
        ({"offsets": {0: (5, 6)}}, True),
        ({"offsets": {0: (6, 9)}}, False),
        ({"offsets": {1: (0, 9)}}, False),
    ],
)
def test_a_selection_takes_what_fits_all_of_it(selection: dict[str, Any], fits: bool) -> None:
    assert Selection(**selection).takes(one_letter()) is fits


def test_of_a_table_offsets_are_those_of_the_source() -> None:
    here, elsewhere = Selection(offsets={1: (3, 4)}), Selection(offsets={0: (5, 6)})

    assert [one.takes(one_letter(), of_table=True) for one in (here, elsewhere)] == [True, False]
    nowhere = replace(one_letter(), origin=Origin("clicks"))
    assert not here.takes(nowhere, of_table=True)


def test_only_what_did_not_parse_has_surely_led_to_no_row() -> None:
    one = within(Selection(errors=("is",)), may_multiply=True)

    assert one.takes(one_letter())
    assert not one.takes(one_letter(kind=ErrorClass.CONVERT))
    assert not one.takes(one_letter("column a is null"))
    assert str(one) == "error 'is', of records that have led to no row"


def test_letters_are_counted_that_a_replay_takes_and_that_it_leaves_out() -> None:
    replay = Replay(sink="orders", topic="clicks", until={0: 10})
    only_parse = replay.model_copy(update={"selection": within(Selection(), may_multiply=True)})
    told = Circumstances("orders", "clicks")
    several = Circumstances("orders", "clicks", may_multiply=True)
    letters = [
        letter(letter_headers("no", kind, where.origin(0, 5, None, ()), where))
        for where in (told, several)
        for kind in (ErrorClass.PARSE, ErrorClass.CONVERT)
    ]

    by_present_query, by_letter = (CountedLetters.of(letters, one) for one in (only_parse, replay))

    assert by_present_query == CountedLetters(Counter(parse=2), 2)
    assert by_letter == CountedLetters(Counter(parse=2, convert=1), 1)
    assert by_letter.warnings[0].startswith("1 letter left out: the query makes several rows of a record")


def test_a_replay_takes_each_letter_below_its_bound_that_no_earlier_one_took() -> None:
    replay = Replay(sink="s", topic="t", until={0: 10}, done=(taken(4, "empty"), taken(2)))

    assert [offset for offset in range(12) if takes(replay, offset)] == [4, 5, 6, 7, 8, 9]
    assert [offset for offset in range(12) if takes(replay, offset, "other")] == [*range(2, 10)]


def test_what_a_replay_took_ends_where_it_was_left_and_never_behind_its_bound() -> None:
    replay = Replay(sink="s", topic="t", selection=Selection(errors=("a",)), until={0: 10, 1: 5})

    (left,) = replay.after({0: 7, 1: 99}, "topic")

    assert left.below == {0: 7, 1: 5}
    assert not replay.is_whole({0: 9, 1: 5})
    assert replay.is_whole({0: 10, 1: 5})


def test_the_list_of_what_was_taken_grows_with_topics_and_selections_alone() -> None:
    other = taken(9).of("other")

    assert merged([taken(3), taken(5, "a"), taken(4), other, taken(2, "a"), taken(0, "b")]) == (
        taken(4),
        taken(5, "a"),
        other,
    )


def test_the_sink_of_a_replay_is_bounded_and_has_the_target_of_its_sink() -> None:
    replay = replaying_sink(SinkSpec.parse(KAFKA))

    assert replay.name == "orders-replay"
    assert (replay.source.kafka.connection, replay.source.kafka.topic) == ("t", "dlq")
    assert (replay.source.kafka.schema_, replay.source.kafka.start) == ("id int", "earliest")
    assert replay.trigger.available_now
    assert replay.set_aside_limits == SetAsideLimits()
    assert replay.to_mapping()["target"] == SinkSpec.parse(KAFKA).to_mapping()["target"]
    assert SinkSpec.parse(replay.to_mapping()) == replay


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"dead_letter": None}, "sets nothing aside"),
        ({"query": "SELECT id, count(*) AS n FROM source GROUP BY id"}, "is not row-wise"),
        ({"name": "n" * 100}, "is too long"),
    ],
)
def test_a_sink_whose_letters_no_sink_can_take_is_told_why(changed: dict[str, Any], why: str) -> None:
    spec = {**KAFKA, "target": {"kafka": {"connection": "t", "topic": "out", "key": ["id"]}}, **changed}
    with pytest.raises(ConfigurationError, match=why):
        replaying_sink(SinkSpec.parse(spec))


def test_letters_of_a_table_are_read_as_copies_beside_the_source() -> None:
    table = {"target": {"postgres": {"connection": "pg", "table": "a.b"}}, "dead_letter": {"table": "a.c"}}

    replay = replaying_sink(SinkSpec.parse({**KAFKA, **table}))

    assert (replay.source.kafka.connection, replay.source.kafka.topic) == ("k", "_sinks-letters-orders")
    assert replay.replay is not None
    assert replay.replay.copied
    assert replay.to_mapping()["dead_letter"] == {"table": "a.c"}


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({}, Selection()),
        ({"query": "SELECT id, explode(array(1, 2)) AS item FROM source"}, Selection(without_rows=True)),
        ({"dead_letter": None}, None),
    ],
)
def test_what_can_be_replayed_of_a_sink(changed: dict[str, Any], found: Selection | None) -> None:
    assert replayable(SinkSpec.parse({**KAFKA, **changed})) == found


def test_a_launch_with_other_bounds_than_were_announced_is_refused() -> None:
    base = replaying_sink(SinkSpec.parse(KAFKA))
    one = base.with_replay(Replay(sink="orders", topic="clicks", until={0: 3}))
    other = base.with_replay(Replay(sink="orders", topic="clicks", until={0: 4}))

    demand_announced(one, one.to_json())
    demand_announced(SinkSpec.parse(KAFKA), other.to_json())
    for recorded in (other.to_json(), SinkSpec.parse(KAFKA).to_json(), ""):
        with pytest.raises(RefusedError, match="is not in force"):
            demand_announced(one, recorded)
    assert replay_of(one.to_json()) == one.replay


def test_which_letters_is_read_as_forms_and_commands_write_it() -> None:
    ask = ReplayRequest.parse(
        error=["parse", " "], since="2026-11-20T22:00:00Z", before="", offsets="0:5-7, 1:3", overwrite=True
    )

    assert ask.selection == Selection(
        errors=("parse",), since_ms=1_795_212_000_000, offsets={0: (5, 8), 1: (3, 4)}
    )
    assert ask.overwrite
    assert ReplayRequest.parse(error="", since=None) == ReplayRequest(Selection())


def test_everything_that_is_unclear_is_told_at_once() -> None:
    with pytest.raises(ConfigurationError) as wrong:
        ReplayRequest.parse(since="yesterday", before="2026-11-20T22:00:00", offsets="0:9-7, x, 1:2, 1:3")

    assert [problem.where for problem in wrong.value.problems] == [
        "since",
        "before",
        "offsets",
        "offsets",
        "offsets.1",
    ]
