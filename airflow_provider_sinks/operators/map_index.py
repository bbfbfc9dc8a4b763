"""What Airflow's pages call an instance of a mapped task: the sink that it runs, and not its number."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from airflow_provider_sinks.arguments import parse
from airflow_provider_sinks.core.errors import ConfigurationError

if TYPE_CHECKING:
    import jinja2
    from airflow.sdk import BaseOperator, Context

    _Operator = BaseOperator
else:
    _Operator = object

_TEMPLATE = "{{ task.map_name }}"


class NamedInstances(_Operator):
    """Names the mapped instances of an operator or sensor by what they are about; stands before its base.

    Airflow asks for the template before it makes an instance, so a default of the constructor comes too late:
    it is put into the context once the fields are rendered, right before the name is. An author's own
    ``map_index_template`` counts.
    """

    @property
    def map_name(self) -> str:
        """The name of the sink, or else of the connection; known once the fields are rendered."""
        with suppress(ConfigurationError):
            if (sink := getattr(self, "sink", None)) is not None:
                return parse(sink).name
        return str(getattr(self, "conn_id", None) or "")

    def _do_render_template_fields(
        self,
        parent: Any,
        template_fields: Iterable[str],
        context: Context,
        jinja_env: jinja2.Environment,
        seen_oids: set[int],
    ) -> None:
        super()._do_render_template_fields(parent, template_fields, context, jinja_env, seen_oids)
        is_mapped = parent is self and (context["ti"].map_index or 0) >= 0
        if is_mapped and context.get("map_index_template") is None:
            context["map_index_template"] = _TEMPLATE
