"""Who may use a form: what Airflow can enforce, and what a form enforces by itself.

``access_control`` is for the FAB auth manager, and there it only grants: a role that may edit every DAG
(*User* by default) keeps doing so. ``users`` is enforced by each task that looks or acts, in the task itself:
a person who may edit task instances can mark other tasks as done, but not make these do anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_sinks.core.errors import Problem, SinkError

if TYPE_CHECKING:
    from airflow.sdk import Context

ACCESS_CONTROL: dict[str, dict[str, set[str]]] = {
    "Op": {"DAGs": {"can_read", "can_edit"}, "DAG Runs": {"can_create"}},
    "User": {"DAGs": {"can_read"}},
    "Viewer": {"DAGs": {"can_read"}},
}
"""What the forms grant by default, by role of the FAB auth manager: *Op* may trigger, the others may look."""

_ANSWER_WITHIN = timedelta(hours=1)
_ASK_AGAIN_TIMES = 3
"""When a task begins to wait, its worker reports its own end seconds later. Where the answer came before,
Airflow's scheduler takes that report for the end of the task, and fails it: the answer is lost (3.3.2)."""
_ASK_AGAIN_AFTER = timedelta(seconds=15)
"""Until then a process that was about to take the lost answer has found out."""


@dataclass(frozen=True)
class People:
    """The people of one form.

    :param users: the Airflow users whose runs do anything; ``None`` means whoever may trigger the DAG.
    :param approvers: who may approve, the name of each by its user id; else whoever may edit the DAG.
    """

    users: Sequence[str] | None = None
    approvers: Mapping[str, str] = field(default_factory=dict)

    def problems(self) -> Iterator[Problem]:
        """Judge the arguments."""
        if not _is_names(self.users):
            yield Problem("users", f"is {self.users!r}", 'names of Airflow users: ["ann", "bob"]')
        if not _is_names_by_id(self.approvers):
            yield Problem("approvers", f"is {self.approvers!r}", 'names by user id: {"ann": "Ann"}')

    @property
    def guarded(self) -> dict[str, Any]:
        """Return arguments for each task that looks or acts."""
        return {} if self.users is None else {"pre_execute": partial(demand_user, tuple(self.users))}

    def approval(self, subject: str, body: str) -> ApprovalOperator:
        """Return a task that asks somebody; whoever does not answer has said no.

        An answer that Airflow loses is asked for again, and never guessed.
        """
        return ApprovalOperator(
            task_id="approve",
            subject=subject,
            body=body,
            defaults=ApprovalOperator.REJECT,
            response_timeout=_ANSWER_WITHIN,
            assigned_users=[{"id": id_, "name": name} for id_, name in self.approvers.items()] or None,
            retries=_ASK_AGAIN_TIMES,
            retry_delay=_ASK_AGAIN_AFTER,
        )


def demand_user(users: Sequence[str], context: Context) -> None:
    """Let a task go on only where one of these users triggered the run.

    A run that was cleared or tried again keeps the user who triggered it. One that another DAG started has
    the user of that DAG's run, or none.
    """
    user = context["dag_run"].triggering_user_name
    if user not in users:
        raise AirflowFailException(str(_not_for(user, users))) from None


def _is_names(value: object) -> bool:
    """Tell names from one text, which would count as many names of one letter."""
    if value is None:
        return True
    return isinstance(value, list | tuple) and all(isinstance(name, str) and name for name in value)


def _is_names_by_id(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(text, str) for text in (*value, *value.values()))


def _not_for(user: str | None, users: Sequence[str]) -> SinkError:
    return SinkError(
        f'user "{user}" may not use this form' if user else "nobody triggered this form, so it does nothing",
        "It was triggered, but nothing was looked at or changed.",
        f"Ask one of those who may: {', '.join(users) or 'nobody is named'}.",
    )
