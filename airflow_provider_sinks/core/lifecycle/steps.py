"""What the verbs of a sink's life do, as a list of steps: a dry run prints the list that a run follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from airflow_provider_sinks.core.dead_letters.replay import Replay
from airflow_provider_sinks.core.decision.facts import Creation, ResourceFacts, Role
from airflow_provider_sinks.core.progress.identity import ResourceKind
from airflow_provider_sinks.core.progress.record import WriterId
from airflow_provider_sinks.core.wording import count, offsets


@dataclass(frozen=True)
class Fence:
    """End what these writers have open, and let no older producer of theirs write again."""

    writers: tuple[WriterId, ...]

    def __str__(self) -> str:
        return f"fence {count(len(self.writers), 'writer')}: {', '.join(self.writers)}"


@dataclass(frozen=True)
class Announce:
    """Commit the driver's record of a new generation: from then on older progress counts no more.

    :param positions: where each source partition goes on.
    :param rows_before: rows of earlier generations that the data output keeps.
    :param dead_before: dead letters of earlier generations that their output keeps.
    :param unfinished: outputs that are still to be emptied or made anew. They are recorded with an id
        that none has: a start in between is refused, and the same command goes on where this one died.
    :param kind: what the outputs are.
    :param replay: the dead letters that this generation takes, where the sink is a replay.
    """

    generation: int
    positions: Mapping[int, int]
    rows_before: int = 0
    dead_before: int = 0
    unfinished: tuple[Role, ...] = ()
    kind: ResourceKind = ResourceKind.TOPIC
    replay: Replay | None = None

    def __str__(self) -> str:
        if self.unfinished:
            waits = " and ".join(role.called(self.kind) for role in self.unfinished)
            return f"announce generation {self.generation} as unfinished: no start goes on before the {waits}"
        return f"announce generation {self.generation} at source offsets {offsets(self.positions)}"


@dataclass(frozen=True)
class EmptyOutput:
    """Delete all that an output holds now; it stays the same output.

    :param title: what it is called.
    :param facts: what was looked at.
    """

    title: str
    facts: ResourceFacts

    def __str__(self) -> str:
        before = (
            f" before offsets {offsets(self.facts.high)}" if self.facts.kind is ResourceKind.TOPIC else ""
        )
        return f"empty {self.title}: delete its {self.facts.kind.entry}s{before}"


@dataclass(frozen=True)
class DeleteOutput:
    """Delete an output or the progress place, if it is still the one that was looked at."""

    title: str
    facts: ResourceFacts

    def __str__(self) -> str:
        return f"delete {self.title} with {self.facts.contents}"


@dataclass(frozen=True)
class CopyLetters:
    """Copy dead letters from their table into the topic that a replay reads.

    :param number: how many.
    :param table: what it is called, with its name.
    """

    number: int
    table: str
    topic: str

    def __str__(self) -> str:
        return f'copy {count(self.number, "dead letter")} of {self.table} into topic "{self.topic}"'


@dataclass(frozen=True)
class Create:
    """Make what is not there, or not any more."""

    creation: Creation

    def __str__(self) -> str:
        return str(self.creation)


@dataclass(frozen=True)
class PauseDag:
    """Let Airflow start no more runs of a DAG.

    :param others: other sinks of the same DAG, which are not started any more either.
    """

    dag_id: str
    others: tuple[str, ...] = ()

    def __str__(self) -> str:
        also = f"; it also runs {', '.join(self.others)}" if self.others else ""
        return f'pause DAG "{self.dag_id}"{also}'


@dataclass(frozen=True)
class UnpauseDag:
    """Let Airflow start runs of a DAG again."""

    dag_id: str
    others: tuple[str, ...] = ()

    def __str__(self) -> str:
        also = f"; it also runs {', '.join(self.others)}" if self.others else ""
        return f'unpause DAG "{self.dag_id}"{also}'


@dataclass(frozen=True)
class StartRun:
    """Start a run of a DAG that no schedule starts.

    :param conf: what the fields of its form hold; none of them is a secret.
    """

    dag_id: str
    conf: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        return f'start a run of DAG "{self.dag_id}"'


@dataclass(frozen=True)
class TaskKey:
    """Names one task instance."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int = -1

    def __str__(self) -> str:
        mapped = f"[{self.map_index}]" if self.map_index >= 0 else ""
        return f"{self.dag_id}.{self.task_id}{mapped} of run {self.run_id}"


@dataclass(frozen=True)
class EndTask:
    """Mark a task instance as failed: its driver ends, and nothing is lost or written twice."""

    task: TaskKey

    def __str__(self) -> str:
        return f"end task {self.task} by marking it as failed"


@dataclass(frozen=True)
class ClearTask:
    """Clear a task instance: its driver ends, and the task begins anew."""

    task: TaskKey

    def __str__(self) -> str:
        return f"clear task {self.task}: it begins anew"


@dataclass(frozen=True)
class EndProcess:
    """End a driver that runs on this machine: between two epochs if it listens, and hard if it does not.

    :param directory: of its launch, which stands in its command line: a pid alone may be a stranger's.
    """

    pid: int
    directory: str

    @property
    def runs(self) -> str:
        """Which driver runs."""
        return f"process {self.pid} of this machine"

    def __str__(self) -> str:
        return f"end driver process {self.pid} of {self.directory}"


@dataclass(frozen=True)
class KillApplication:
    """Kill a driver on YARN, and wait until it is over.

    :param spark_conn_id: the connection that names the resource manager.
    """

    app_id: str
    spark_conn_id: str

    @property
    def runs(self) -> str:
        """Which driver runs."""
        return f"{self.app_id} of YARN"

    def __str__(self) -> str:
        return f"kill YARN application {self.app_id}"


@dataclass(frozen=True)
class Forget:
    """Delete what Airflow remembers of a sink: witness, count of launches, status."""

    sink: str

    def __str__(self) -> str:
        return f'forget what Airflow remembers of sink "{self.sink}"'


EndDriver: TypeAlias = EndProcess | KillApplication
"""How a driver is ended that is known by what runs, and not by a task."""

AirflowStep: TypeAlias = PauseDag | UnpauseDag | StartRun | EndTask | ClearTask | EndDriver | Forget
"""What is done in Airflow, and to what it runs."""

TargetStep: TypeAlias = Fence | Announce | EmptyOutput | DeleteOutput | Create | CopyLetters
"""What is done where the rows are."""

Step: TypeAlias = AirflowStep | TargetStep


@dataclass(frozen=True)
class Plan:
    """What one verb does to one sink.

    :param what: the outcome in one sentence.
    :param warnings: what a person should know before it is done.
    """

    sink: str
    what: str
    steps: tuple[Step, ...] = ()
    warnings: tuple[str, ...] = ()

    def to_mapping(self) -> dict[str, Any]:
        """Return it as plain JSON values, for XCom and ``-o json``."""
        steps, warnings = [str(step) for step in self.steps], list(self.warnings)
        return {"sink": self.sink, "what": self.what, "steps": steps, "warnings": warnings}

    def __str__(self) -> str:
        return "\n".join(
            [self.what, *_numbered(self.steps), *(f"  warning: {text}" for text in self.warnings)]
        )


def _numbered(steps: Sequence[Step]) -> list[str]:
    return [f"  {number}. {step}" for number, step in enumerate(steps, 1)]
