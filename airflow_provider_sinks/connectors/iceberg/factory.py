"""What makes the writers of one run into Iceberg tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from airflow_provider_sinks.connectors.iceberg.layout import TablePlan
from airflow_provider_sinks.connectors.iceberg.staged_files import IcebergFiles
from airflow_provider_sinks.connectors.table_format.factory import StagingFactory
from airflow_provider_sinks.core.decision.facts import Role

if TYPE_CHECKING:
    from airflow_provider_sinks.connectors.iceberg.data_files import IcebergDataFiles
    from airflow_provider_sinks.connectors.table_format.data_files import Announce


@dataclass(frozen=True, kw_only=True)
class IcebergWriterFactory(StagingFactory):
    """See :class:`.factory.StagingFactory`.

    :param data: the table of the rows.
    :param dead: the table of what is set aside.
    """

    data: TablePlan
    dead: TablePlan | None

    @property
    def location(self) -> str:
        """Where the table of the rows lies."""
        return self.data.location

    @property
    def writes_keys(self) -> bool:
        """Yes: the older rows of a key are deleted by a file that has it."""
        return True

    def files(
        self, role: Role, names: tuple[str, ...], announce: Announce, *, is_of_keys: bool
    ) -> IcebergDataFiles:
        """Return the files of one writer for one table in one epoch."""
        from airflow_provider_sinks.connectors.iceberg.data_files import IcebergDataFiles

        plan = self.data if role is Role.DATA else self.dead
        assert plan is not None  # noqa: S101  the runtime stops before it gives dead letters
        io = cast("IcebergFiles", self.stages.files).io
        return IcebergDataFiles(plan, role, names, io, announce, is_of_keys=is_of_keys)
