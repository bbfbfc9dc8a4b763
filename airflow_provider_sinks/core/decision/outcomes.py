"""The verdicts that the decision can come to: go on, wait, refuse. What each says and carries."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from airflow_provider_sinks.core.decision.accept import WayOn, next_generation, ways_on
from airflow_provider_sinks.core.decision.case import Case
from airflow_provider_sinks.core.decision.classify import ResourceSeen, resource_seen, resume_positions
from airflow_provider_sinks.core.decision.facts import (
    CreateTopic,
    Existence,
    Observation,
    ResourceFacts,
    Role,
    Wanted,
)
from airflow_provider_sinks.core.decision.refusals import describe
from airflow_provider_sinks.core.decision.repairs import repair
from airflow_provider_sinks.core.decision.verdict import Verdict, VerdictKind
from airflow_provider_sinks.core.decision.ways import Refusal, Way
from airflow_provider_sinks.core.progress.checkpoint import CheckpointUse, judge_checkpoint
from airflow_provider_sinks.core.progress.history import EARLIEST
from airflow_provider_sinks.core.progress.identity import Identity
from airflow_provider_sinks.core.wording import offsets, summary


def go_on(observation: Observation, wanted: Wanted, answer: WayOn | None = None) -> Verdict:
    """Return the verdict that lets the sink run: from its records, or in a new generation.

    :param answer: the way on that was accepted, if something was refused.
    """
    accepted = answer.ways if answer else ()
    is_reset = not observation.known or Way.START_OVER in accepted or Way.RESUME_FROM_WITNESS in accepted
    verdict = (_reset if is_reset else _resume)(observation, wanted, accepted)
    warnings = (f'accepted "{answer.code}": {answer.explanation}',) if answer else ()
    return replace(verdict, actions=missing_topics(observation, wanted), warnings=warnings, accepted=accepted)


def wait(roles: Collection[Role], observation: Observation, wanted: Wanted) -> Verdict:
    """Return the verdict that waits for what could not be seen.

    :param roles: the topics that the verdict hangs on.
    """
    first, *others = _unseen(roles, observation)
    hints = [hint for facts in observation.topics().values() if (hint := _grant(facts, observation))]
    if observation.history is None and observation.history_hint:
        hints.append(observation.history_hint)
    return Verdict(
        VerdictKind.WAIT,
        f'sink "{wanted.sink}" cannot be judged: {first}',
        " ".join([*(f"Also: {what}." for what in others), "Nothing was decided or changed."]),
        "\n  ".join(hints) or "Repair what is named above; the next try looks again.",
    )


def refuse(
    refusals: Sequence[Refusal], waits: Collection[Role], observation: Observation, wanted: Wanted
) -> Verdict:
    """Return the refusal that names every reason and every way on.

    While a part could not be seen no way on is offered: nobody can say yes to what nobody has seen.
    """
    cases = [Case(observation, wanted, refusal) for refusal in refusals]
    texts = [describe(case) for case in cases]
    ways = () if waits else ways_on(refusals, observation, wanted)
    hints = [hint for case in cases if (hint := repair(case))]
    if waits:
        hints.append(f"First make visible what is not: {'; '.join(_unseen(waits, observation))}.")
    more = f" (and {len(texts) - 1} more)" if len(texts) > 1 else ""
    return Verdict(
        VerdictKind.REFUSE,
        texts[0][0] + more,
        "\n  ".join([texts[0][1], *(f"Also: {primary}. {detail}" for primary, detail in texts[1:])]),
        "\n  ".join([*hints, *_offers(ways)]),
        refusals=tuple(refusals),
        ways=ways,
    )


def not_fitting(refused: Verdict, accept: str | None) -> Verdict:
    """Return a refusal that also says that an accept code does not fit it."""
    if accept is None:
        return refused
    said = f'The code accept="{accept}" does not fit what is seen now, so it was not taken.'
    return replace(refused, detail=f"{refused.detail}\n  {said}")


def _resume(observation: Observation, wanted: Wanted, accepted: Sequence[Way]) -> Verdict:
    checkpoint, history = observation.checkpoint, observation.known
    use = judge_checkpoint(checkpoint, history, wanted.stateful) if checkpoint else None
    positions = resume_positions(observation, wanted)
    skips = Way.SKIP_LOST in accepted
    if skips:
        positions = {p: max(at, observation.source.low.get(p, at)) for p, at in positions.items()}
    return Verdict(
        VerdictKind.RESUME,
        f'sink "{wanted.sink}" resumes after epoch {history.epoch} of generation {history.generation}',
        f"Recorded are {summary(history)}; source offsets {offsets(positions)}.",
        generation=history.generation,
        epoch=history.epoch,
        positions=positions,
        # Spark ignores start offsets where a checkpoint exists.
        continues_checkpoint=use is CheckpointUse.CONTINUE and not skips,
        rows_before=history.rows_ever - history.rows_total,
        dead_before=history.dead_ever - history.dead_total,
    )


def _reset(observation: Observation, wanted: Wanted, accepted: Sequence[Way]) -> Verdict:
    witness = wanted.witness if Way.RESUME_FROM_WITNESS in accepted else None
    generation = next_generation(observation, wanted)
    positions = None
    if witness is not None:
        later = dict.fromkeys(range(observation.source.partitions), EARLIEST)
        positions = {**later, **witness.offsets}
    begin = f"offsets {offsets(positions)}" if positions else wanted.start
    return Verdict(
        VerdictKind.RESUME if positions else VerdictKind.START,
        f'sink "{wanted.sink}" starts generation {generation}',
        f'From {begin} of source topic "{wanted.source}".',
        generation=generation,
        positions=positions,
        rows_before=rows_left(observation, wanted),
        dead_before=dead_left(observation),
    )


def rows_left(observation: Observation, wanted: Wanted) -> int:
    """Count the rows that earlier generations left in the data topic that is there."""
    history, witness = observation.known, wanted.witness
    recorded = history.rows_ever if _is_still(observation.data, observation.recorded.get(Role.DATA)) else 0
    known = witness.rows if witness and _is_still(observation.data, witness.identities.data) else 0
    return max(recorded, known)


def dead_left(observation: Observation) -> int:
    """Count the dead letters that earlier generations left in the dead-letter topic that is there."""
    history, topic = observation.known, observation.dead_letter
    is_still = topic is not None and _is_still(topic, observation.recorded.get(Role.DEAD_LETTER))
    return history.dead_ever if is_still else 0


def _is_still(topic: ResourceFacts, recorded: Identity | None) -> bool:
    return recorded is not None and resource_seen(topic, recorded) in (
        ResourceSeen.PRESENT,
        ResourceSeen.GREW,
    )


def missing_topics(observation: Observation, wanted: Wanted) -> tuple[CreateTopic, ...]:
    """Return how to make the topics that are not there, the progress topic first."""
    seen = observation.topics()
    return tuple(
        topic.for_source(observation.source)
        for role, topic in wanted.topics().items()
        if seen[role].existence is Existence.MISSING
    )


def _unseen(roles: Collection[Role], observation: Observation) -> Iterator[str]:
    for role, facts in observation.topics().items():
        topic = f'{role} "{facts.name}"'
        if facts.existence is Existence.UNKNOWN:
            yield f"{topic} could not be seen ({facts.reason})"
        elif role is Role.SOURCE and role in roles and facts.existence is Existence.MISSING:
            yield f"{topic} does not exist, and it is not this sink's to make"
        elif role is Role.PROGRESS and observation.history is None:
            yield f'progress in "{facts.name}" could not be read ({observation.history_reason})'
        elif role is Role.PROGRESS and role in roles:
            yield f"cleanup.policy of {topic} could not be seen ({facts.reason})"


def _grant(facts: ResourceFacts, observation: Observation) -> str:
    if not facts.denied:
        return ""
    return (
        f"kafka-acls.sh --bootstrap-server {observation.bootstrap} --add --allow-principal User:<user of the "
        f"connection> --operation {facts.denied} --topic {facts.name}"
    )


def _offers(ways: Sequence[WayOn]) -> Iterator[str]:
    if ways:
        yield (
            "Choose how to go on, once and for exactly this, by the argument of SubmitSinkJobOperator "
            "(or the field of its form):"
        )
    for way in ways:
        yield f'accept="{way.code}": {way.explanation}.'
