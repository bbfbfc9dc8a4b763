"""The driver as a writer: it fences its own id once, and commits records under it for as long as it runs."""

from __future__ import annotations

from airflow_provider_sinks.connectors.epoch_writer import InDoubtError
from airflow_provider_sinks.connectors.kafka.in_force import demand_in_force, driver_holder
from airflow_provider_sinks.connectors.kafka.run import KafkaRun
from airflow_provider_sinks.connectors.kafka.transaction import Transaction
from airflow_provider_sinks.core.errors import FencedError, JobFailedError, UnavailableError
from airflow_provider_sinks.core.progress.record import DRIVER, ProgressRecord


class DriverRecords:
    """The driver as a writer: it commits records only, under its own transactional id.

    Making one fences every other holder of that id, and the same producer commits everything that follows. A
    start that was overtaken in between is therefore stopped by its first record, instead of fencing the newer
    start a second time and announcing what is no longer true.

    So a commit that silent brokers did not answer is brought to its end by that producer as well. Whatever it
    asks for it asks under its own epoch, and whoever took the id since has a higher one: a newer start wins,
    also one that takes the id at this moment. Beyond that nothing can be had. Where brokers wake up to a
    transaction that is older than its timeout, they abort it and raise the epoch themselves, and a producer
    that lost its place in a transaction is broken for good. Only ``init_transactions`` gives a new epoch, and
    it does so whoever holds the id: a newer start that took it behind our last look would be fenced by the
    older one. So this driver ends, and its retry is a newer start like any other.

    :param run: the run of this driver; its generation is not known yet.
    """

    def __init__(self, run: KafkaRun) -> None:
        self._transaction = Transaction(run, DRIVER)
        self._transaction.take()
        self.holder = driver_holder(run)

    def run_as(self, run: KafkaRun) -> None:
        """Take the run and generation that are about to be announced for the ones in force."""
        self._transaction.belong_to(run)

    def commit(self, record: ProgressRecord) -> None:
        """Commit a record.

        :raises UnavailableError: no answer yet; to go on, call it again with the same record.
        :raises JobFailedError: the brokers ended the transaction; the next start reads what holds.
        """
        try:
            if not self._transaction.settle():
                self._write(record)
        except InDoubtError as silent:
            raise UnavailableError(silent.primary, silent.detail, silent.hint) from silent
        except UnavailableError as error:
            if not self._transaction.is_lost:
                raise
            raise JobFailedError(
                f"{error.primary}, or by brokers that were silent for longer than its transaction timeout",
                error.detail,
                "A retry takes the driver's id anew and goes on from what is committed.",
            ) from error

    def demand_in_force(self) -> None:
        """Raise :class:`FencedError` when a newer start has announced itself."""
        demand_in_force(self._transaction.run)

    def demand_held(self) -> None:
        """Raise :class:`FencedError` when another start has taken the driver's id since this one did.

        For the time between the fence and the first record, when no record tells of this run yet, and before
        what no transaction protects. A broker that cannot tell is believed to have nothing to say: the
        record decides then.
        """
        run = self._transaction.run
        if driver_holder(run) not in (None, self.holder):
            raise FencedError(
                f'another start of sink "{run.sink}" took over',
                "It took the transactional id of the driver, which this one held.",
                "Nothing to do if the other start is yours; else find out who runs the same sink.",
            )

    def demand_may_reset(self) -> None:
        """See that no other run has taken over, also one whose taking the broker cannot tell.

        Before the first record the progress topic names the run before, and is not asked.

        :raises FencedError: one has.
        """
        self.demand_held()
        if self._transaction.run.generation:
            self.demand_in_force()

    def close(self) -> None:
        """Drop the producer."""
        self._transaction.close()

    def _write(self, record: ProgressRecord) -> None:
        self._transaction.arm()
        self._transaction.put(record)
        self._transaction.commit()
