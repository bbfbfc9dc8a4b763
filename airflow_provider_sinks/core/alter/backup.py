"""Who alters a connection: the mark on ``<id>.before``, which holds the old options meanwhile.

That connection is lock, backup and undo in one. It is there exactly while its connection is being altered,
and only one can be made. Its description says for people and for us whose it is, and holds no secret.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from airflow_provider_sinks.core.errors import ConfigurationError, Problem

SUFFIX = ".before"
_LONGEST_ID = 200


@dataclass(frozen=True)
class Holder:
    """A task that alters: the same over its retries."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int = -1

    def __str__(self) -> str:
        index = f"[{self.map_index}]" if self.map_index >= 0 else ""
        return f'task {self.task_id}{index} of DAG {self.dag_id}, run "{self.run_id}"'


@dataclass(frozen=True)
class Mark:
    """What the description of ``<id>.before`` says.

    :param at: when the alteration began, in UTC.
    :param undoing: the old options are being put back: a retry goes on with that, and alters nothing more.
    :param variables: those whose values the new options hold, by name: they may be gone when a retry comes.
    """

    holder: Holder
    at: str
    undoing: bool = False
    variables: tuple[str, ...] = ()

    def text(self, conn_id: str) -> str:
        """Return the description, for people and for :meth:`parse`."""
        return (
            f"The options of {conn_id} from before {self.holder} altered them. It is removed when that task "
            f"is done; if that never comes, copy it back or not, and delete it. {json.dumps(asdict(self))}"
        )

    @classmethod
    def parse(cls, description: str | None) -> Mark | None:
        """Read a description back; ``None`` for one that we have not written."""
        text = description or ""
        try:
            data = json.loads(text[text.index("{") :])
            return cls(
                Holder(**data["holder"]), data["at"], data["undoing"], tuple(data.get("variables", ()))
            )
        except (ValueError, KeyError, TypeError):
            return None


def before_id(conn_id: str) -> str:
    """Return the id of the connection that holds the old options.

    :raises ConfigurationError: the connection is such a backup itself, or its id is too long for one.
    """
    problem = None
    if conn_id.endswith(SUFFIX):
        problem = Problem("conn_id", f"ends with {SUFFIX}: it holds the old options of another connection")
    elif len(conn_id) + len(SUFFIX) > _LONGEST_ID:
        problem = Problem("conn_id", f"is longer than {_LONGEST_ID - len(SUFFIX)} characters")
    if problem is not None:
        raise ConfigurationError(f'connection "{conn_id}" cannot be altered', [problem])
    return conn_id + SUFFIX
