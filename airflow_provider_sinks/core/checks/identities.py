"""What a sink's connections lead to, compared with what the sink announced when it last ran.

It is the comparison of a start (:meth:`.Identity.compared_with`), and it stops what a start would refuse: an
output that holds rows must be the one that they were written to, whatever else has its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from airflow_provider_sinks.core.checks.check import Check, Checks
from airflow_provider_sinks.core.decision.facts import Existence, ResourceFacts, Role
from airflow_provider_sinks.core.progress.identity import Identity, ResourceKind, Sameness
from airflow_provider_sinks.core.progress.witness import Witness
from airflow_provider_sinks.core.wording import count


def announced(witness: Witness) -> dict[Role, Identity]:
    """Return which resources a sink announced when it last ran."""
    known = witness.identities
    found = {Role.SOURCE: known.source, Role.DATA: known.data, Role.DEAD_LETTER: known.dead_letter}
    return {role: one for role, one in {**found, Role.PROGRESS: known.progress}.items() if one}


@dataclass(frozen=True)
class IdentityChecks:
    """Compares what is there with what a witness knows.

    :param checks: makes the checks.
    :param start_decides: a start comes next, and offers ways on: what it would refuse is told, and fails
        nothing.
    """

    checks: Checks
    witness: Witness
    start_decides: bool = False

    def of(self, seen: Mapping[Role, ResourceFacts]) -> Iterator[Check]:
        """Compare what was seen, as far as it was announced."""
        known = announced(self.witness)
        for role, facts in seen.items():
            if role in known:
                yield self._compared(role, facts, known[role])

    def _compared(self, role: Role, facts: ResourceFacts, then: Identity) -> Check:
        name, now = f"identity of {facts.title(role)}", _as_far_as_seen(facts, then)
        if not facts.system:
            return self.checks.skips(name, f"it cannot be seen: {facts.reason or facts.existence}")
        match now.compared_with(then):
            case Sameness.ELSEWHERE:
                return self._other(name, _elsewhere(facts, then), role, _BACK_TO.format(facts.kind.system))
            case Sameness.RENAMED:
                return self.checks.skips(name, f'the sink had another one before: "{then.name}"')
            case Sameness.REPLACED:
                detail = f"another {facts.kind.value} of this name: id {now.id}, the sink knew {then.id}"
                return self._other(name, detail, role, _BRING_BACK.format(facts.kind.value))
            case Sameness.SHRANK:
                detail = f"it has {count(now.partitions, 'partition')}, the sink knew {then.partitions}"
                return self._other(name, detail, role, _BRING_BACK.format(facts.kind.value))
            case Sameness.SAME | Sameness.GREW:
                return self._same(name, role, facts, then)
            case other:
                assert_never(other)

    def _same(self, name: str, role: Role, facts: ResourceFacts, then: Identity) -> Check:
        if facts.existence is not Existence.MISSING:
            return self.checks.passes(name, f"{facts.kind.system} {facts.system}, as before")
        if role is Role.SOURCE:  # a check of its own
            return self.checks.skips(name, "it is not there")
        detail = f"it is not there any more; the sink knew {then.id}"
        return self._other(name, detail, role, _BRING_BACK.format(facts.kind.value))

    def _other(self, name: str, detail: str, role: Role, back: str) -> Check:
        written = self._written(role)
        if role is Role.DEAD_LETTER and not written:
            return self.checks.unknown(name, f"{detail}; a start refuses it if dead letters were written")
        if not written:
            return self.checks.unknown(name, f"{detail}; nothing was written there, so a start goes on")
        if self.start_decides:
            hint = f"{back}, or choose one of the ways on that a start offers: airflow sinks plan."
            return self.checks.unknown(name, f"{detail}, {written}; a start refuses it", hint)
        return self.checks.fails(name, f"{detail}, {written}", f"{back}. {_ON_PURPOSE}")

    def _written(self, role: Role) -> str:
        """Say what would be left behind; nothing where nothing would."""
        rows, dead = self.witness.rows_ever, self.witness.dead_ever
        match role:
            case Role.SOURCE:
                return "and its offsets are of no other"
            case Role.DATA:
                return f"and wrote {count(rows, 'row')} to it" if rows else ""
            case Role.DEAD_LETTER:
                return f"and set {count(dead, 'dead letter')} aside there" if dead else ""
            case Role.PROGRESS:
                return f"and keeps there that it wrote {count(rows, 'row')}" if rows or dead else ""
            case other:
                assert_never(other)


_BACK_TO = "Name the {} it ran on"
_BRING_BACK = "Bring the {} back that it knew"
_ON_PURPOSE = (
    "To move the sink on purpose: pause it, alter the connection with validate=False, and start it with one "
    "of the ways on that its start offers."
)


def _as_far_as_seen(facts: ResourceFacts, then: Identity) -> Identity:
    """Return which one is there; what cannot be seen of it is told by a check of its own."""
    if facts.existence is Existence.MISSING or not facts.id:
        return replace(then, system=facts.system, name=facts.name)
    return facts.identity


def _elsewhere(facts: ResourceFacts, then: Identity) -> str:
    found = f"this connection leads to {facts.kind.system} {facts.system}"
    ran = f"the sink ran on {then.system}"
    if facts.kind is ResourceKind.TOPIC:
        return f"{found}; {ran}"
    there = f"has id {facts.id}" if facts.id else f"is {facts.existence}"
    return f"{found}, where it {there}; {ran}, knew it by id {then.id}"
