"""The rights of a user on a Kafka cluster: which ones a sink needs, and a check for each.

The least that a sink needs, and nothing else (``docs/validate_connection.md`` has the commands):

=======================  ==========================================================
source topic             Read
data, dead-letter topic  Write; Create where it does not exist yet
progress topic           Read, Write, DescribeConfigs; Create where it does not exist
transactional ids        Write, on all with the prefix ``<prefix>.<sink>.``
groups, cluster          nothing
=======================  ==========================================================

Describe comes with Read and with Write. DescribeConfigs on the data topic is worth having: without it a sink
knows the limits of its rows only by what the broker refuses (:mod:`.topic_checks` says so).
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from airflow_provider_sinks.core.checks.check import Check, Checks, Family
from airflow_provider_sinks.core.decision.facts import Existence, Role


class Operation(enum.StrEnum):
    """What an ACL allows, as ``kafka-acls.sh`` spells it."""

    READ = "Read"
    WRITE = "Write"
    CREATE = "Create"
    DESCRIBE = "Describe"
    DESCRIBE_CONFIGS = "DescribeConfigs"


class Kind(enum.StrEnum):
    """What an ACL is for, as ``kafka-acls.sh`` calls it."""

    TOPIC = "topic"
    TRANSACTIONAL_ID = "transactional-id"


class Held(enum.Enum):
    """Whether the user has a right."""

    YES = "allowed"
    NO = "denied"
    UNKNOWN = "could not be asked"
    NOT_NEEDED = "not needed"


@dataclass(frozen=True)
class Right:
    """One operation on one thing.

    :param prefix: whether the name stands for all names that begin with it.
    """

    operation: Operation
    kind: Kind
    name: str
    prefix: bool = False

    def __str__(self) -> str:
        if self.prefix:
            return f'{self.operation} on transactional ids "{self.name}*"'
        return f'{self.operation} on {self.kind} "{self.name}"'

    def command(self, servers: str, principal: str) -> str:
        """Return the command that grants it.

        :param principal: such as ``User:orders``.
        """
        pattern = " --resource-pattern-type prefixed" if self.prefix else ""
        return (
            f"kafka-acls.sh --bootstrap-server {servers} --add --allow-principal '{principal}' "
            f"--operation {self.operation} --{self.kind} {self.name}{pattern}"
        )


@dataclass(frozen=True)
class RightsFacts:
    """What was learnt about rights.

    :param why: for what is not simply yes, by right.
    :param seconds: how long asking took.
    """

    held: Mapping[Right, Held] = field(default_factory=dict)
    why: Mapping[Right, str] = field(default_factory=dict)
    seconds: float = 0.0


NEEDS: Mapping[Role, tuple[Operation, ...]] = {
    Role.SOURCE: (Operation.READ,),
    Role.DATA: (Operation.WRITE, Operation.CREATE),
    Role.DEAD_LETTER: (Operation.WRITE, Operation.CREATE),
    Role.PROGRESS: (Operation.READ, Operation.WRITE, Operation.DESCRIBE_CONFIGS, Operation.CREATE),
}


def needed_rights(
    topics: Mapping[str, Collection[Role]], existing: Mapping[str, Existence], id_prefix: str
) -> Iterator[Right]:
    """Return the rights that a sink needs on one cluster.

    :param topics: what each topic is to the sink.
    :param existing: which of them are there; where one is, nobody needs to create it.
    :param id_prefix: how the ids of its transactions begin; empty if it does not write there.
    """
    for name, roles in topics.items():
        operations = dict.fromkeys(operation for role in roles for operation in NEEDS[role])
        for operation in operations:
            if operation is not Operation.CREATE or existing[name] is not Existence.PRESENT:
                yield Right(operation, Kind.TOPIC, name)
    if id_prefix:
        yield Right(Operation.WRITE, Kind.TRANSACTIONAL_ID, id_prefix, prefix=True)


def rights_checks(
    conn_id: str, rights: Sequence[Right], facts: RightsFacts, servers: str, principal: str
) -> Iterator[Check]:
    """Judge each right by itself, so that a missing one is named exactly."""
    checks = Checks(conn_id, Family.PERMISSIONS)
    for right in rights:
        held, why = facts.held.get(right, Held.UNKNOWN), facts.why.get(right, "")
        if held is Held.YES:
            yield checks.passes(str(right), why or held.value)
        elif held is Held.NO:
            yield checks.fails(str(right), why or held.value, right.command(servers, principal))
        elif held is Held.NOT_NEEDED:
            yield checks.skips(str(right), why or held.value)
        else:
            yield checks.unknown(str(right), f"{held.value}: {why}" if why else held.value)
    if rights:
        yield checks.skips("groups", "a sink needs no right on groups: it joins none and commits no offsets")
