"""The verdicts that stop a sink: wait for what could not be seen, or refuse."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from airflow_provider_sinks.core.decision.accept import Offer, offers
from airflow_provider_sinks.core.decision.facts import Existence, Observation, Role
from airflow_provider_sinks.core.decision.reasons.reason import Evidence, Refusal, repair_of, text_of
from airflow_provider_sinks.core.decision.start_request import StartRequest
from airflow_provider_sinks.core.decision.verdict import Verdict, VerdictKind


def wait(roles: Collection[Role], observation: Observation, request: StartRequest) -> Verdict:
    """Return the verdict that waits for what could not be seen.

    :param roles: what the verdict hangs on.
    """
    first, *others = _unseen(roles, observation)
    hints = [facts.grant for facts in observation.resources().values() if facts.grant]
    if observation.history is None and observation.history_hint:
        hints.append(observation.history_hint)
    return Verdict(
        VerdictKind.WAIT,
        f'sink "{request.sink}" cannot be judged: {first}',
        " ".join([*(f"Also: {what}." for what in others), "Nothing was decided or changed."]),
        "\n  ".join(dict.fromkeys(hints)) or "Repair what is named above; the next try looks again.",
    )


def refuse(
    refusals: Sequence[Refusal], waits: Collection[Role], observation: Observation, request: StartRequest
) -> Verdict:
    """Return the refusal that names every reason and every way on.

    While a part could not be seen no way on is offered: nobody can say yes to what nobody has seen.
    """
    evidence = [Evidence(observation, request, refusal) for refusal in refusals]
    first, *others = map(text_of, evidence)
    offered = () if waits else offers(refusals, observation, request)
    hints = list(dict.fromkeys(hint for each in evidence if (hint := repair_of(each))))
    if waits:
        hints.append(f"First make visible what is not: {'; '.join(_unseen(waits, observation))}.")
    more = f" (and {len(others)} more)" if others else ""
    return Verdict(
        VerdictKind.REFUSE,
        first.primary + more,
        "\n  ".join([first.detail, *(f"Also: {text.primary}. {text.detail}" for text in others)]),
        "\n  ".join([*hints, *_choices(offered)]),
        refusals=tuple(refusals),
        offers=offered,
    )


def not_fitting(refused: Verdict, accept: str | None) -> Verdict:
    """Return a refusal that also says that an accept code does not fit it."""
    if accept is None:
        return refused
    said = f'The code accept="{accept}" does not fit what is seen now, so it was not taken.'
    return replace(refused, detail=f"{refused.detail}\n  {said}")


def _unseen(roles: Collection[Role], observation: Observation) -> Iterator[str]:
    for role, facts in observation.resources().items():
        title = facts.title(role)
        if facts.existence is Existence.UNKNOWN:
            yield f"{title} could not be seen ({facts.reason})"
        elif role is Role.SOURCE and role in roles and facts.existence is Existence.MISSING:
            yield f"{title} does not exist, and it is not this sink's to make"
        elif role is Role.PROGRESS and observation.history is None:
            yield f'progress in "{facts.name}" could not be read ({observation.history_reason})'
        elif facts.hidden and role in roles:
            yield f"{facts.hidden} of {title} could not be seen ({facts.reason})"


def _choices(offered: Sequence[Offer]) -> Iterator[str]:
    if offered:
        yield (
            "Choose how to go on, once and for exactly this, by the argument of SubmitSinkJobOperator "
            "(or the field of its form):"
        )
    for offer in offered:
        yield f'accept="{offer.code}": {offer.explanation}.'
