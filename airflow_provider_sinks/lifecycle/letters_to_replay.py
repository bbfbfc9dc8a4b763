"""The letters that a replay can take: those of a topic as they stand, those of a table by their copies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from airflow_provider_sinks.connectors.stored_letters import LetterCopies, StoredLetters
from airflow_provider_sinks.core.dead_letters.letter import Letter
from airflow_provider_sinks.core.dead_letters.replay import Replay, Selection
from airflow_provider_sinks.core.decision.facts import Existence, Role
from airflow_provider_sinks.core.lifecycle.new_generation import Situation
from airflow_provider_sinks.core.lifecycle.steps import CopyLetters
from airflow_provider_sinks.core.spec.sink import SinkSpec


@dataclass
class LettersToReplay:
    """What is there, and what of it would have to be copied.

    :param base: the replaying sink.
    :param stored: the letters of the sink.
    :param copies: where they are copied to; ``None`` where a replay reads them as they are.
    :param selection: those that are asked for.
    """

    base: SinkSpec
    stored: StoredLetters
    copies: LetterCopies | None
    selection: Selection
    _end: int = field(default=0, init=False)

    def all(self) -> Iterator[Letter]:
        """Yield the letters at their places in the topic that is read; what is to be copied comes last."""
        if self.copies is None:
            yield from self.stored.all()
            return
        yield from self.copies.all()
        for number, letter in enumerate(self._uncopied()):
            yield replace(letter, place=(0, self._end + number))

    def foreseen(self, situation: Situation) -> Situation:
        """Return what will be seen of the topic once they are copied."""
        source = situation.observation.source
        if self.copies is None or source.existence is Existence.UNKNOWN:
            return situation
        self._end = source.high.get(0, 0)
        high = {0: self._end + sum(1 for _ in self._uncopied())}
        source = replace(
            source,
            existence=Existence.PRESENT,
            partitions=1,
            low=source.low or {0: 0},
            high=high,
            stable=high,
        )
        return replace(situation, observation=replace(situation.observation, source=source))

    def with_gone(self, situation: Situation) -> Situation:
        """Return it with where copies are whose letters do not stand in the table any more."""
        own = situation.spec.replay
        if self.copies is None or own is None:
            return situation
        spec = situation.spec.with_replay(own.model_copy(update={"gone": self._gone}))
        return replace(situation, spec=spec)

    def copying(self, situation: Situation) -> CopyLetters | None:
        """Return the step that copies what is asked for; ``None`` where all of it is copied."""
        number = sum(1 for _ in self._wanted(self._uncopied()))
        observation = situation.observation
        if self.copies is None or observation.dead_letter is None or not number:
            return None
        return CopyLetters(number, observation.dead_letter.title(Role.DEAD_LETTER), observation.source.name)

    def copy(self) -> None:
        """Copy what is asked for."""
        assert self.copies is not None  # noqa: S101  there is a step that says so
        self.copies.add(lambda: self._wanted(self.stored.all()))

    @cached_property
    def _gone(self) -> tuple[tuple[int, int], ...]:
        """Return from which offset up to which other copies are of no letter in the table."""
        stored = {letter.identity for letter in self.stored.all()} if self.copies else set()
        found: list[tuple[int, int]] = []
        was_gone = False
        for letter in self.copies.all() if self.copies else ():
            offset, is_gone = letter.place[1], letter.identity not in stored
            if is_gone:
                first = found.pop()[0] if was_gone else offset
                found.append((first, offset + 1))
            was_gone = is_gone
        return tuple(found)

    @cached_property
    def _copied(self) -> frozenset[tuple[object, ...]]:
        return frozenset(letter.identity for letter in self.copies.all()) if self.copies else frozenset()

    def _uncopied(self) -> Iterator[Letter]:
        return (letter for letter in self.stored.all() if letter.identity not in self._copied)

    def _wanted(self, letters: Iterator[Letter]) -> Iterator[Letter]:
        replay = self.base.replay
        assert isinstance(replay, Replay)  # noqa: S101  the sink of a replay
        for letter in letters:
            is_ours = letter.can_be_replayed and letter.is_of(replay.sink, replay.topic)
            if is_ours and self.selection.takes(letter, of_table=True):
                yield letter
