"""Which run of a sink is in force: as the progress topic says, and as the driver's transactional id tells."""

from __future__ import annotations

from airflow_provider_sinks.connectors.kafka.coordinators import broker_memory
from airflow_provider_sinks.connectors.kafka.progress_log import ProgressLog, read_timeout_seconds
from airflow_provider_sinks.connectors.kafka.run import KafkaRun
from airflow_provider_sinks.core.errors import FencedError
from airflow_provider_sinks.core.progress.history import History
from airflow_provider_sinks.core.progress.record import DRIVER

_HOLDER_SECONDS = 5.0


def demand_in_force(run: KafkaRun, seconds: float | None = None) -> History:
    """Return the sink's progress, after making sure that this run is the one in force.

    :param run: the run that asks.
    :param seconds: how long reading may take; ``None`` is long enough for any open transaction to end.
    :raises FencedError: when a newer start has announced itself.
    """
    log = ProgressLog.shared(run.options, run.topics.progress)
    history = log.read(run.sink, seconds or read_timeout_seconds(run.transaction_timeout))
    driver = history.in_force
    if driver is not None and (driver.run, driver.generation) != (run.run, run.generation):
        raise FencedError(
            f'a newer start of sink "{run.sink}" took over',
            f"Run {driver.run} (generation {driver.generation}, {driver.at}) is in force; this is run "
            f"{run.run} (generation {run.generation}).",
            "Nothing to do if the newer start is yours; else find out who runs the same sink.",
        )
    return history


def demand_unrivalled(run: KafkaRun, seconds: float | None = None) -> History:
    """Do as :func:`demand_in_force`, and see that nobody has taken the driver's id since.

    Ids are shared by every sink of this name and prefix in the cluster, whatever its progress topic. A start
    takes the driver's id before it fences a writer. So whoever opens a writer behind that fence sees that the
    driver's id has another holder, also where the newer start keeps its progress in a topic that this run
    does not read. Where the broker cannot tell, the progress topic alone decides.

    :raises FencedError: when a newer start has announced itself, or has taken the driver's id.
    """
    history = demand_in_force(run, seconds)
    now = driver_holder(run) if run.holder else None
    if now not in (None, run.holder):
        raise FencedError(
            f'another start of sink "{run.sink}" holds its transactional ids',
            f"They begin with {run.prefix}.{run.sink}. It keeps its progress in another topic "
            f'than "{run.topics.progress}", or has not announced itself yet.',
            "Find out who runs a sink of this name; two of them need names or transactional_id_prefix of "
            "their own.",
        )
    return history


def driver_holder(run: KafkaRun) -> tuple[int, int] | None:
    """Return who holds the driver's id now, as the coordinator counts; ``None`` where it cannot tell."""
    name = run.id_of(DRIVER)
    facts = broker_memory(run.options, {DRIVER: name}, _HOLDER_SECONDS).ids.get(DRIVER)
    return (facts.producer, facts.epoch) if facts else None
