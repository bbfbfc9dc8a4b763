"""Which dead letters a replay takes, and the sink that it is. Pure.

A replay of sink ``orders`` is a sink of its own, ``orders-replay``: its source is the topic of the dead
letters, its query and target are those that ``orders`` has *now*. So its progress, its writers' ids and its
fence are its own, and it disturbs a running ``orders`` in nothing. Letters that stand in a table are copied
into a topic first, each once (:class:`.connectors.stored_letters.LetterCopies`).

Why each letter leads to rows once, however often replays are started, killed or started twice:

- Which letters a replay takes is told by what never changes of them (text of the error, time, place) and by
  two bounds that are fixed when it begins: ``until``, the end of the topic at that moment, and ``done``, what
  earlier replays took. What comes back lies behind ``until`` and waits for another replay.
- Both are part of the spec, and so of the driver's record that begins a generation of the sink. They are
  computed behind the fence of that beginning, from the positions that earlier replays have reached and that
  none of them can move any more. A driver whose spec has other bounds than the record is refused.
- Within the generation it is any sink: rows, letters that come back and progress are one transaction.
- A letter is taken whose record has led to no row. Where a query may make several rows of a record, one of
  them may be set aside beside others that are written: the letter says so, and for those that do not, the
  query as it is now does (:func:`within`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import Field

from airflow_provider_sinks.core.dead_letters.letter import ErrorClass, Letter
from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.schemas.subjects import TOPIC_NAME, for_topic
from airflow_provider_sinks.core.spec.parts import Part

_NAME_LENGTH_MAX = 100
SUFFIX = "-replay"
_COPIES = "_sinks-letters-{}"


class Selection(Part):
    """Which letters: all that fit everything that is said.

    :param errors: classes of errors, or parts of their text; one of them must fit. None: any error.
    :param since_ms: set aside then or later, in milliseconds since 1970.
    :param before_ms: set aside before then.
    :param offsets: by partition of the dead-letter topic, or of the source where letters stand in a table:
        from the first up to, and without, the second; a partition that is not named has none. Empty: all.
    :param without_rows: only of records that have led to no row, because they did not parse.
    """

    errors: tuple[str, ...] = ()
    since_ms: int | None = None
    before_ms: int | None = None
    offsets: dict[int, tuple[int, int]] = Field(default_factory=dict)
    without_rows: bool = False

    def takes(self, letter: Letter, *, of_table: bool = False) -> bool:
        """Whether a letter is one of them.

        :param of_table: it stands, or stood first, in a table.
        """
        kind, origin = letter.error_class, letter.origin
        partition, offset = (origin.partition, origin.offset) if of_table else letter.place
        return (
            (kind is ErrorClass.PARSE or not self.without_rows)
            and (not self.errors or any(named == kind or named in letter.error for named in self.errors))
            and (self.since_ms is None or letter.at_ms >= self.since_ms)
            and (self.before_ms is None or letter.at_ms < self.before_ms)
            and (not self.offsets or self._holds(partition, offset))
        )

    def _holds(self, partition: int | None, offset: int | None) -> bool:
        if partition is None or offset is None:
            return False
        first, end = self.offsets.get(partition, (0, 0))
        return first <= offset < end

    def __str__(self) -> str:
        said = [f"error {' or '.join(map(repr, self.errors))}"] if self.errors else []
        said += [f"offsets {p}: {first} to {end}" for p, (first, end) in sorted(self.offsets.items())]
        said += [f"since {self.since_ms} ms"] if self.since_ms is not None else []
        said += [f"before {self.before_ms} ms"] if self.before_ms is not None else []
        what = ", ".join(said) or "all"
        return f"{what}, of records that have led to no row" if self.without_rows else what


def within(selection: Selection, *, may_multiply: bool) -> Selection:
    """Return what can be taken of a selection.

    :param may_multiply: the query may make several rows of a record.
    """
    return selection.model_copy(update={"without_rows": may_multiply})


class Taken(Part):
    """What an earlier replay took: those of its selection below an offset of each partition.

    :param topic: which dead-letter topic, told apart from every other that has or had its name; empty in
        records that did not say so: then the one of the record.
    """

    selection: Selection
    below: dict[int, int]
    topic: str = ""

    def of(self, topic: str) -> Taken:
        """Return the same with its topic, where it does not tell one itself."""
        return self if self.topic else self.model_copy(update={"topic": topic})


class Replay(Part):
    """The part of a spec that makes its sink a replay; nobody writes it by hand.

    :param sink: whose dead letters they are.
    :param topic: the source topic of that sink, for letters that do not tell whose they are.
    :param until: the end of each partition of the dead-letter topic when the replay began.
    :param done: what earlier replays took of this topic.
    :param elsewhere: what they took of other topics; a sink may come back to one.
    :param copied: the topic has copies of letters that stand in a table.
    :param gone: offsets of copies whose letters had left the table when it began: from the first of a pair up
        to, and without, the second.
    """

    sink: str
    topic: str
    selection: Selection = Selection()
    until: dict[int, int] = Field(default_factory=dict)
    done: tuple[Taken, ...] = ()
    elsewhere: tuple[Taken, ...] = ()
    copied: bool = False
    gone: tuple[tuple[int, int], ...] = ()

    def of_any_record(self) -> Replay:
        """Return the same replay, whether a record has led to rows or not."""
        return self.model_copy(update={"selection": within(self.selection, may_multiply=False)})

    def is_whole(self, positions: Mapping[int, int]) -> bool:
        """Whether everything up to its bound was looked at.

        :param positions: of the sink, by partition.
        """
        return all(positions.get(partition, 0) >= end for partition, end in self.until.items())

    def after(self, positions: Mapping[int, int], topic: str) -> tuple[Taken, ...]:
        """Return what was taken of any topic when this replay is over, or left where it is.

        :param positions: of its sink, behind the fence; what lies below was looked at.
        :param topic: that it has read.
        """
        below = {p: min(positions.get(p, 0), end) for p, end in self.until.items()}
        own = [*self.done, Taken(selection=self.selection, below=below)]
        return merged([*(one.of(topic) for one in own), *self.elsewhere])

    def takes(self, letter: Letter) -> bool:
        """Whether it replays a letter of its topic, of those that can be."""
        partition, offset = letter.place
        return (
            offset < self.until.get(partition, 0)
            and not any(first <= offset < end for first, end in self.gone)
            and self.selection.takes(letter, of_table=self.copied)
            and not any(
                offset < taken.below.get(partition, 0) and taken.selection.takes(letter, of_table=self.copied)
                for taken in self.done
            )
        )


def merged(taken: Iterable[Taken]) -> tuple[Taken, ...]:
    """Return the same with one entry for each topic and selection: it grows with those, not with replays."""
    found: dict[tuple[str, str], Taken] = {}
    for one in taken:
        which = (one.topic, one.selection.model_dump_json())
        before = found[which].below if which in found else {}
        below = {p: max(before.get(p, 0), one.below.get(p, 0)) for p in {*before, *one.below}}
        found[which] = one.model_copy(update={"below": below})
    return tuple(one for one in found.values() if any(one.below.values()))


def replay_of(record_spec: str) -> Replay | None:
    """Return the replay that a progress record was written by.

    :param record_spec: the spec in the driver's record, as JSON text.
    """
    found = json.loads(record_spec or "{}").get("replay")
    return Replay.model_validate(found) if found else None


def replay_name(sink: str) -> str:
    """Return the name of the sink that replays the dead letters of another."""
    return f"{sink}{SUFFIX}"


def replay_data(spec: Mapping[str, Any], replay: Replay, letters: Mapping[str, str] | None) -> dict[str, Any]:
    """Return the sink that replays the dead letters of a sink, as a mapping.

    :param spec: the sink, as JSON values.
    :param letters: where a source finds them (:attr:`.SinkSpec.letters_to_read`); ``None`` where they stand
        in a table, and their copies beside the source.
    :raises ConfigurationError: it has no dead letters, or no sink can take them.
    """
    name, dead = str(spec["name"]), spec.get("dead_letter")
    problems = []
    if dead is None:
        problems.append(Problem("dead_letter", "is not set: the sink sets nothing aside"))
    if len(replay_name(name)) > _NAME_LENGTH_MAX:
        problems.append(Problem("name", f"is too long for one with {SUFFIX!r} behind it"))
    if problems or dead is None:
        raise ConfigurationError(f'dead letters of sink "{name}" cannot be replayed', problems)
    kind, read = next(iter(spec["source"].items()))
    copies = {"connection": read["connection"], "topic": _COPIES.format(name)}
    return {
        **spec,
        "name": replay_name(name),
        "source": {kind: {**_source(read), **(letters or copies)}},
        "dead_letter": {o: value for o, value in dead.items() if o not in ("max_per_epoch", "max_ratio")},
        "trigger": "available_now",
        "replay": replay.model_copy(update={"copied": letters is None}).model_dump(mode="json"),
    }


def _source(read: Mapping[str, Any]) -> dict[str, Any]:
    """Return how letters are read: as the records that they were.

    A replay has a beginning and an end of its own. Subjects that are named by the topic stay those of the
    source's topic, whose schemas the records were written by.
    """
    own = ("connection", "topic", "start", "watermark")
    source = {option: value for option, value in read.items() if option not in own}
    if read.get("registry") is not None:
        kept = for_topic(read.get("subjects") or TOPIC_NAME, str(read["topic"]))
        if "{" in kept:
            source["subjects"] = kept
        else:
            source["schema"] = source.get("schema") or {"subject": kept}
    return source
