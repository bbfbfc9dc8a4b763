"""Waits until a sink's topics allow a start, and says what a start would do. It never acts.

The job decides again, by the same function and with the last word; what is seen here is advice, in the place
where a person looks first.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NoReturn

from airflow.providers.common.compat.sdk import conf
from airflow.sdk import BaseOperator, BaseSensorOperator, PokeReturnValue
from airflow.sdk.exceptions import (
    AirflowRescheduleException,
    AirflowSensorTimeout,
    AirflowSkipException,
    TaskDeferralError,
    TaskDeferralTimeout,
)
from pydantic import PlainValidator

from airflow_provider_sinks.arguments import accept_code, as_list, plain
from airflow_provider_sinks.assets import connection_assets, sink_asset
from airflow_provider_sinks.core.errors import SinkError
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.lifecycle.dry_run import DryRun, dry_run
from airflow_provider_sinks.metadata.memory import SinkMemory
from airflow_provider_sinks.metadata.store import store_of
from airflow_provider_sinks.operators.arguments import AcceptCode, Arguments, Flag, SinkArgument, choice
from airflow_provider_sinks.operators.map_index import NamedInstances
from airflow_provider_sinks.retry_policy import airflow_errors
from airflow_provider_sinks.triggers.check_topics import LAST_LOOK_SECONDS, CheckTopicsTrigger

if TYPE_CHECKING:
    from airflow.sdk import Context

WAIT = "wait"
FAIL = "fail"

_CHOICES = (WAIT, FAIL)
_XCOM_KEY = "return_value"
_TRIGGER_GRACE = timedelta(seconds=LAST_LOOK_SECONDS + 60)
"""How much longer than the sensor's own time Airflow waits for a trigger that nobody runs."""


class CheckTopicsSensor(NamedInstances, BaseSensorOperator):
    """Look at a sink's topics until they allow a start; fail at once when they forbid it.

    What cannot be seen (an ACL, a broker that is away, a source topic that does not exist yet) is waited for,
    and after ``timeout`` named. A refusal names its ways on with their accept codes. No topic is created.

    The XCom holds the last observation and verdict as data, of a task that fails or times out too; the
    observation is null when nothing answered.

    Deferred or not, the verdict that counts comes from :meth:`poke` on a worker: there both copies of
    Airflow's memory can be read. A trigger only tells when looking is worth it (``CheckTopicsTrigger`` has
    the argument), so results, XCom and errors are the same.

    Mapped over sinks (``partial(...).expand(sink=[...])``) the memory is read from the Variable alone,
    because Airflow learns the assets of such a task too late; to have both copies, name them:
    ``partial(inlets=sink_assets(sinks))``.

    :param sink: the sink: a ``Sink``, or a mapping with the same keys. (templated)
    :param accept: a one-time answer to a refusal: the code that the refusal printed. (templated)
    :param on_unknown: what to do when something cannot be seen: ``wait``, or ``fail`` this try at once and
        leave it to the task's retries.
    :param deferrable: wait in the triggerer instead of on a worker; ``mode`` counts only when false.
    :param poke_interval: how long to wait between two looks; a number is seconds.
    :param timeout: how long to wait for what cannot be seen; a number is seconds.
    """

    template_fields: Sequence[str] = ("sink", "accept")
    template_fields_renderers: ClassVar[dict[str, str]] = {"sink": "json"}
    ui_color = "#f7ecd5"

    def __init__(
        self,
        *,
        sink: SinkSpec | dict[str, Any] | str,
        accept: str | None = None,
        on_unknown: str = WAIT,
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        poke_interval: timedelta | float = 30,
        timeout: timedelta | float = 600,
        **kwargs: Any,
    ) -> None:
        judged = _read(sink, accept, on_unknown, deferrable, is_rendered=False)
        data = plain(sink)
        asset = sink_asset(data, judged.sink)
        own = [*([asset] if asset else []), *connection_assets(data, judged.sink)]
        kwargs["inlets"] = [*as_list(kwargs.get("inlets")), *own]
        super().__init__(poke_interval=poke_interval, timeout=timeout, **kwargs)
        self.sink = data
        self.declared = sink
        self.accept = accept
        self.on_unknown = on_unknown
        self.deferrable = deferrable
        self._asset = asset
        self._deadline: float | None = None
        self._seen: DryRun | None = None

    def execute(self, context: Context) -> Any:
        """Look until a start is allowed; say at the end of the time what could not be seen."""
        if self._deadline is None:
            self._deadline = time.time() + self.timeout
        try:
            return super().execute(context)
        except AirflowRescheduleException:
            raise
        except Exception as error:
            if self._seen is not None:  # what fails returns nothing, and is wanted to say most
                context["ti"].xcom_push(key=_XCOM_KEY, value=self._seen.to_mapping())
            named = self._named(error)
            if named is error:
                raise
            raise named from None

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Look again from a worker. Called when the trigger has rung.

        :param event: why it rang, and the ``deadline`` of the whole wait.
        """
        self.log.info("looking again: %s", event["why"])
        self._deadline = event["deadline"]
        return self.execute(context)

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context) -> Any:
        """Go on after a deferral. A trigger that nobody ran until the time was over counts as one that rang.

        Airflow's sensor raises its own timeout then, which does not tell what could not be seen.
        """
        try:
            return BaseOperator.resume_execution(self, next_method, next_kwargs, context)
        except TaskDeferralTimeout:
            return self.execute_complete(context, {"why": "no triggerer reported in time", "deadline": 0.0})
        except TaskDeferralError as error:
            if self.soft_fail or self.never_fail:
                raise AirflowSkipException(str(error)) from None
            raise

    def poke(self, context: Context) -> PokeReturnValue:
        """Look once."""
        with airflow_errors():
            spec = _read(self.sink, self.accept, self.on_unknown, self.deferrable, is_rendered=True).sink
            memory = SinkMemory(spec.name, store_of(context, self._asset), self.log)
            self._seen = seen = dry_run(spec, memory, accept_code(self.accept))
            self.log.info("%s", seen)
            error = seen.verdict.error()
            if error is not None and not (seen.waits and self.on_unknown == WAIT):
                self._fail(error)
        if seen.waits and self.deferrable:
            self._defer(spec)
        return PokeReturnValue(is_done=not seen.waits, xcom_value=seen.to_mapping())

    def _fail(self, error: SinkError) -> NoReturn:
        if self.soft_fail and error.retryable:  # Airflow's sensor skips only what fails for good
            raise AirflowSkipException(str(error)) from error
        raise error

    def _defer(self, spec: SinkSpec) -> NoReturn:
        """Leave the worker until it is worth looking again."""
        deadline = self._deadline or 0.0
        left = deadline - time.time()
        if left <= 0:
            raise AirflowSensorTimeout(self._time_is_over())
        trigger = CheckTopicsTrigger(
            sink=plain(spec),
            accept=accept_code(self.accept),
            deadline=deadline,
            poke_interval=self.poke_interval,
            longest_interval=self._longest_interval,
        )
        timeout = timedelta(seconds=left) + _TRIGGER_GRACE
        self.defer(trigger=trigger, method_name="execute_complete", timeout=timeout)

    def _named(self, error: Exception) -> Exception:
        """Return an error with what it is about, where Airflow's sensor only says that it ended."""
        if isinstance(error, AirflowSensorTimeout):
            return (AirflowSkipException if self.never_fail else AirflowSensorTimeout)(self._time_is_over())
        if isinstance(error, AirflowSkipException):
            return AirflowSkipException(str(error.__cause__ or self._time_is_over()))
        return error

    @property
    def _longest_interval(self) -> float | None:
        if not self.exponential_backoff:
            return None
        return self.max_wait.total_seconds() if self.max_wait else self.timeout

    def _time_is_over(self) -> str:
        unseen = self._seen.verdict.error() if self._seen else ""
        return f"waited {self.timeout:g} s for what could not be seen\n{unseen}"


def _on_unknown(value: object) -> str:
    return str(choice(value, _CHOICES))


class _Arguments(Arguments):
    """What is judged of the arguments."""

    sink: SinkArgument
    accept: AcceptCode
    on_unknown: Annotated[str, PlainValidator(_on_unknown)]
    deferrable: Flag


def _read(
    sink: object, accept: object, on_unknown: object, deferrable: object, *, is_rendered: bool
) -> _Arguments:
    """Judge what is certain: all of it when the task runs, and what is no template when the DAG is read."""
    given = {"sink": sink, "accept": accept, "on_unknown": on_unknown, "deferrable": deferrable}
    primary = "CheckTopicsSensor cannot work with its arguments"
    return _Arguments.read(primary, given, is_rendered=is_rendered)
