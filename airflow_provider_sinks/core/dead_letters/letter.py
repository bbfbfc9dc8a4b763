"""What a dead letter tells, the same for every target: headers of a record, columns of a table.

A sink writes it in the transaction of its rows (:mod:`.spelling`).

>>> ErrorClass.of("The value is not JSON.").value
'parse'
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass

from airflow_provider_sinks.core.dead_letters.headers import SOURCE_HEADER, Headers, text_headers, whole


class ErrorClass(enum.StrEnum):
    """Why a record was set aside, in the words of a count."""

    PARSE = "parse"
    """The source record does not fit the source's format and schema."""
    CONVERT = "convert"
    """A value of the query does not fit its column, or a column of the key is null."""
    TOO_LARGE = "too_large"
    """The row is larger than the target takes."""
    REFUSED = "refused"
    """The target does not take the row for another reason, such as a constraint."""

    @classmethod
    def of(cls, error: str) -> ErrorClass:
        """Return the class of an error by its words, for letters that do not tell it."""
        return next((kind for kind, words in CLASS_WORDS.items() if re.search(words, error)), cls.REFUSED)

    @classmethod
    def of_row(cls, error: str) -> ErrorClass:
        """Return the class of an error that a row came with: of its conversion, or of its source record."""
        return cls.CONVERT if cls.of(error) is cls.CONVERT else cls.PARSE


CLASS_WORDS: Mapping[ErrorClass, str] = {
    ErrorClass.PARSE: r"^The (value|key) (?!cannot be written)",
    ErrorClass.TOO_LARGE: r'^Topic "[^"]*" does not take the row',
    ErrorClass.CONVERT: (
        r"^((key )?column .*?( is null|: )|partition column |The (value|key|timestamp) cannot be written)"
    ),
}
"""How the errors of each class begin; patterns that Python and Java read alike."""


@dataclass(frozen=True)
class Origin:
    """The source record that a letter is about, and how often it was tried.

    :param partition: of the source topic; ``None`` for a row that many records led to.
    :param timestamp_ms: of the source record, in milliseconds since 1970.
    :param headers: of the source record.
    :param replays: how often the letter was replayed, and came back.
    """

    topic: str
    partition: int | None = None
    offset: int | None = None
    timestamp_ms: int | None = None
    headers: Headers = ()
    replays: int = 0

    @classmethod
    def of_letter(cls, headers: Headers, topic: str) -> Origin:
        """Return what a letter that is replayed is about, tried once more.

        :param topic: the source topic, for a letter that does not name one.
        """
        told = text_headers(headers)
        return cls(
            told.get("source.topic", topic),
            whole(told.get("source.partition")),
            whole(told.get("source.offset")),
            whole(told.get("source.timestamp")),
            tuple(
                (name[len(SOURCE_HEADER) :], value)
                for name, value in headers
                if name.startswith(SOURCE_HEADER)
            ),
            (whole(told.get("replays")) or 0) + 1,
        )


@dataclass(frozen=True)
class Circumstances:
    """Where and when letters are written: the same for all of a writer and an epoch.

    :param sink: whose letters they are; of a replay, the sink that set them aside first.
    :param source: the source topic of that sink.
    :param spec_digest: of the spec that the rows were written with.
    :param is_replay: the records that are read are letters themselves.
    :param may_multiply: a record may lead to several rows, of which others are written.
    """

    sink: str
    source: str
    generation: int = 0
    epoch: int = 0
    spec_digest: str = ""
    is_replay: bool = False
    may_multiply: bool = False

    def origin(
        self, partition: int | None, offset: int | None, timestamp_ms: int | None, headers: Headers
    ) -> Origin:
        """Return what a record that was read is about.

        :param headers: of the record that was read.
        """
        if self.is_replay:
            return Origin.of_letter(headers, self.source)
        return Origin(self.source, partition, offset, timestamp_ms, headers)

    def is_one_of_several(self, error_class: ErrorClass) -> bool:
        """Whether other rows of a record may be written beside one that is set aside."""
        return self.may_multiply and error_class is not ErrorClass.PARSE


@dataclass(frozen=True)
class Letter:
    """A dead letter as it is stored.

    :param place: partition and offset in the topic of dead letters; of a table page and line, or the source's
        partition and offset, as its target has it.
    :param at_ms: when it was set aside, in milliseconds since 1970.
    :param told_class: the class of its error where the letter tells it.
    :param left_out_bytes: the size of a value that was left out; ``None`` where the record is whole.
    :param is_one_of_several: it is about one row of a record whose other rows may be written.
    """

    place: tuple[int, int]
    at_ms: int
    error: str
    told_class: ErrorClass | None
    origin: Origin
    key: bytes | None
    value: bytes | None
    sink: str = ""
    generation: int | None = None
    epoch: int | None = None
    spec_digest: str = ""
    left_out_bytes: int | None = None
    is_one_of_several: bool = False

    @property
    def error_class(self) -> ErrorClass:
        """The class of its error, by its words where the letter does not tell it."""
        return self.told_class or ErrorClass.of(self.error)

    @property
    def identity(self) -> tuple[object, ...]:
        """What tells it apart from each other letter, wherever it is stored."""
        origin = self.origin
        place = (origin.topic, origin.partition, origin.offset, origin.replays)
        return (self.sink, self.generation, self.epoch, self.at_ms, *place, self.error)

    def is_of(self, sink: str, source: str) -> bool:
        """Whether a sink set it aside; one that does not say so is known by its source topic."""
        return self.sink == sink if self.sink else self.origin.topic == source

    @property
    def holds_record(self) -> bool:
        """Whether it holds the record of one place in the source."""
        return self.left_out_bytes is None and self.origin.offset is not None

    @property
    def can_be_replayed(self) -> bool:
        """Whether it holds a record that has led to no row: else its other rows would be written again."""
        return self.holds_record and not self.is_one_of_several
