"""The DAG of a sink whose YAML is broken: it keeps the sink's place in Airflow, and says what is wrong.

It has the id, the tags, the asset and the names of the tasks of the DAG that it stands for. So the sink stays
listed, with its history; a run that is under way goes on, since its task is still there, with the spec it was
started with (``broken_submit.py``); and the commands still find it. It has no schedule and nothing
starts it, until the YAML is mended and the sink's own DAG is back, with its own schedule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk import DAG, Asset, BaseOperator

from airflow_provider_sinks.assets import connection_assets, connection_ids
from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.dag.broken_submit import BrokenSubmitOperator
from airflow_provider_sinks.dag.settings import START_DATE, usual_retries
from airflow_provider_sinks.retry_policy import airflow_errors

if TYPE_CHECKING:
    from airflow.sdk import Context

BROKEN_TAG = "broken"
_RUNS_IT = "submit"
_NOT_TAKEN = frozenset(
    {
        *("every", "check_topics", "owner_link", "spark_conn_id", "spark"),
        *("schedule", "doc_md", "description", "dag_id", "default_args", "owner", "tags"),
        "max_consecutive_failed_dag_runs",
    }
)
"""Options that are about the sink's runs, or told by what is wrong."""


class BrokenSinkOperator(BaseOperator):
    """Fails at once with what is wrong with a sink.

    :param error: what is wrong, and where.
    """

    ui_color = "#f7c7c7"

    def __init__(self, *, error: ConfigurationError, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.error = error

    def execute(self, context: Context) -> NoReturn:  # noqa: ARG002
        """Fail.

        :raises AirflowFailException: always: a retry reads the same YAML.
        """
        with airflow_errors():
            raise self.error
        raise AssertionError  # the type checker takes a context manager for one that may swallow errors

    def resume_execution(self, next_method: str, next_kwargs: Any, context: Context) -> NoReturn:  # noqa: ARG002
        """Fail also where a task that waited outside of a worker comes back.

        :raises AirflowFailException: always.
        """
        self.execute(context)


@dataclass(frozen=True)
class Broken:
    """A sink, or a whole file, that is not valid.

    :param file: the name of the file.
    :param sink: its name; ``None`` where that cannot be read, and for what is wrong with the file as a whole.
    :param data: what the file says of the sink, as far as it can be read.
    """

    file: str
    sink: str | None
    problems: tuple[Problem, ...]
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def dag_id(self) -> str:
        """The id of the DAG that says so: the sink's own, if it is known."""
        file = "".join(letter if letter.isascii() and letter.isalnum() else "." for letter in self.file)
        return self.sink or f"{BROKEN_TAG}.{file}"

    @property
    def error(self) -> ConfigurationError:
        """What is wrong, for people."""
        what = f'sink "{self.sink}" is not valid' if self.sink else f"{self.file} is not valid"
        return ConfigurationError(what, self.problems, f"Mend {self.file}; it is read again by itself.")


def broken_dag(broken: Broken, options: Mapping[str, Any]) -> DAG:
    """Return the DAG that stands for a sink that is not valid.

    :param options: what the DAGs of its neighbours are made with: who may see it, and whose it is.
    """
    said = {name: value for name, value in options.items() if name not in _NOT_TAKEN}
    usual: dict[str, Any] = {"start_date": START_DATE, "catchup": False, "max_active_runs": 1}
    with DAG(
        **{**usual, **said},
        dag_id=broken.dag_id,
        schedule=None,
        tags=_tags(broken, options),
        description=f"{broken.error.primary}: {broken.problems[0]}"[:200],
        doc_md=_page(broken.error),
        default_args=_defaults(broken, options),
    ) as dag:
        before = None
        for task_id in task_ids(broken, options):
            task = _task(broken, task_id, options)
            before = task if before is None else before >> task
    return dag


def task_ids(broken: Broken, options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the tasks that the sink's own DAG has, as far as can be told."""
    if broken.sink is None:
        return ("read",)
    own = broken.data.get("dag")
    asked = [said.get("check_topics") for said in (own, options) if isinstance(said, Mapping)]
    checks = next((said for said in asked if isinstance(said, bool)), not _is_endless(broken, options))
    return ("validate", "check_topics", _RUNS_IT) if checks else ("validate", _RUNS_IT)


def _is_endless(broken: Broken, options: Mapping[str, Any]) -> bool:
    """Return whether the sink has no end; one of which nothing can be read counts as such."""
    trigger = broken.data.get("trigger")
    every = isinstance(trigger, Mapping) and "every" in trigger
    return not broken.data or every or options.get("every") is not None


def _task(broken: Broken, task_id: str, options: Mapping[str, Any]) -> BaseOperator:
    if task_id != _RUNS_IT:
        return BrokenSinkOperator(task_id=task_id, error=broken.error)
    spark = {name: options[name] for name in ("spark_conn_id",) if name in options}
    return BrokenSubmitOperator(
        task_id=task_id,
        error=broken.error,
        asset=_asset(broken),
        **{"inlets": connection_assets(broken.data), **spark, **(options.get("spark") or {})},
    )


def _asset(broken: Broken) -> Asset:
    """Return the sink's asset, which keeps what Airflow remembers of it; without a spec, as none is valid."""
    return Asset(f"sink:{broken.sink}", extra={"connections": [*connection_ids(broken.data)]})


def _tags(broken: Broken, options: Mapping[str, Any]) -> list[str]:
    ours = ["sinks", *(f"connection:{conn_id}" for conn_id in connection_ids(broken.data))]
    tags = [tag for tag in options.get("tags") or ours if len(tag) <= 100]
    return [*tags, BROKEN_TAG]


def _defaults(broken: Broken, options: Mapping[str, Any]) -> dict[str, Any]:
    own = broken.data.get("dag")
    said = own.get("owner") if isinstance(own, Mapping) else None
    owner = said if isinstance(said, str) else options.get("owner")
    given = options.get("default_args") or {}
    usual = usual_retries(endless=_is_endless(broken, options))
    return {**usual, **({"owner": owner} if owner else {}), **given}


def _page(error: ConfigurationError) -> str:
    """Return the page of the DAG; what a user wrote stands in it as code."""
    lines = "\n".join(f"    {line}" for line in str(error).splitlines())
    return (
        f"This sink is not read, and no run of it starts.\n\n{lines}\n\n"
        "A run that was under way before goes on with what it was started with."
    )
