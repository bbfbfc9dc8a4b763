"""Writes the JSON Schema of the YAML file of sinks, for editors.

``python -m airflow_provider_sinks.core.spec.json_schema docs/sink.schema.json`` writes the file. Name it in
the first line of a file of sinks, and an editor that speaks YAML completes and checks as you type::

    # yaml-language-server: $schema=https://…/docs/sink.schema.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airflow_provider_sinks.core.spec.dag_options import DagOptions
from airflow_provider_sinks.core.spec.kinds import load, points
from airflow_provider_sinks.core.spec.sink import SinkSpec
from airflow_provider_sinks.core.spec.sink_file import DAG_KEY

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def sink_schema() -> dict[str, Any]:
    """Return the JSON Schema of one sink, of every kind of target at once: they share all but a few keys."""
    schemas = {name: load(name).sink.model_json_schema(by_alias=True) for name in points()}
    whole: dict[str, Any] = schemas.pop(next(iter(schemas)))
    for name, schema in schemas.items():
        other = _apart(schema, whole["$defs"], name)
        whole["$defs"] |= other["$defs"]
        for key, value in other["properties"].items():
            whole["properties"][key] = _either(whole["properties"].get(key), value)
    return {**whole, "title": "Sink", "description": str(SinkSpec.__doc__)}


def _apart(schema: dict[str, Any], known: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return a schema whose definitions are no others' of the same name: each package names its own."""
    while clashes := [name for name, found in schema["$defs"].items() if known.get(name, found) != found]:
        text = json.dumps(schema)
        for name in clashes:
            text = text.replace(json.dumps(f"#/$defs/{name}"), json.dumps(f"#/$defs/{kind}.{name}"))
        schema = json.loads(text)
        schema["$defs"] |= {f"{kind}.{name}": schema["$defs"].pop(name) for name in clashes}
    return schema


def _either(one: Any, other: Any) -> Any:
    if one in (None, other):
        return other
    choices = [*one.get("anyOf", [one]), *other.get("anyOf", [other])]
    return {"anyOf": [choice for index, choice in enumerate(choices) if choice not in choices[:index]]}


def document_schema() -> dict[str, Any]:
    """Return the JSON Schema of a whole file: a mapping with a list of sinks."""
    sink = sink_schema()
    definitions = sink.pop("$defs")
    sink["properties"][DAG_KEY] = {"$ref": "#/$defs/Dag"}
    return {
        "$schema": DIALECT,
        "title": "Sinks",
        "description": "Exactly-once streaming sinks of airflow-provider-sinks.",
        "type": "object",
        "properties": {"sinks": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/Sink"}}},
        "required": ["sinks"],
        "additionalProperties": False,
        "$defs": {**definitions, "Dag": DagOptions.model_json_schema(), "Sink": sink},
    }


def schema_text() -> str:
    """Return the text of the schema file."""
    return json.dumps(document_schema(), indent=2, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> None:
    """Write the schema into the named file, or to the standard output."""
    if arguments:
        Path(arguments[0]).write_text(schema_text(), encoding="utf-8")
    else:
        sys.stdout.write(schema_text())


if __name__ == "__main__":
    main(sys.argv[1:])
