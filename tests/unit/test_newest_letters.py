"""Which letters of a topic are the newest that were asked for, and how much is read to know it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from airflow_provider_sinks.connectors.kafka.stored_letters import newest_of
from airflow_provider_sinks.core.dead_letters.letter import Letter, Origin

WANTED, OTHER = "wanted", "other"


class Topic:
    """Partitions of letters, each an error and its time, and what was read of them."""

    def __init__(self, *partitions: list[tuple[str, int]]) -> None:
        self._letters = dict(enumerate(partitions))
        self.whole = {p: (0, len(letters)) for p, letters in self._letters.items()}
        self.read_letters = 0

    def read(self, ranges: Mapping[int, tuple[int, int]]) -> Iterator[Letter]:
        for partition, (first, end) in ranges.items():
            for offset in range(first, end):
                self.read_letters += 1
                error, at_ms = self._letters[partition][offset]
                yield Letter((partition, offset), at_ms, error, None, Origin("t"), None, None)

    def newest(self, limit: int) -> list[tuple[int, int]]:
        found = newest_of(self.whole, self.read, limit, lambda letter: letter.error == WANTED)
        return [letter.place for letter in found]


def since(first_ms: int, *errors: str) -> list[tuple[str, int]]:
    return [(error, first_ms + number) for number, error in enumerate(errors)]


def test_newer_letters_far_behind_in_a_partition_win_over_older_ones_at_an_end() -> None:
    today = since(1_000_000, *[WANTED] * 20, *[OTHER] * 2_000)
    long_ago = since(0, *[WANTED] * 20)

    assert Topic(today, long_ago).newest(20) == [(0, offset) for offset in reversed(range(20))]


def test_what_lies_behind_enough_newer_letters_is_not_read() -> None:
    topic = Topic(since(0, *[WANTED] * 100_000), since(0, *[OTHER] * 100_000))

    assert topic.newest(3) == [(0, 99_999), (0, 99_998), (0, 99_997)]
    assert topic.read_letters <= 1_000


def test_a_partition_whose_newest_offsets_hold_no_letter_is_read_on() -> None:
    topic = Topic(since(10, WANTED, *[OTHER] * 600), since(0, WANTED))
    read = topic.read
    topic.read = lambda ranges: (one for one in read(ranges) if one.error == WANTED)  # type: ignore[method-assign]

    assert topic.newest(1) == [(0, 0)]


@pytest.mark.parametrize("limit", [0, 1, 5, 700])
def test_never_more_than_was_asked_for_and_all_if_there_are_fewer(limit: int) -> None:
    topic = Topic(since(0, *[WANTED, OTHER] * 300), [], since(7, WANTED))

    assert len(topic.newest(limit)) == min(limit, 301)
