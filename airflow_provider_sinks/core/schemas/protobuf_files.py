"""From the text of a ``.proto`` file to descriptors, by Protobuf's own compiler (``grpcio-tools``).

A registry gives text, or a serialized ``FileDescriptorProto`` in base64, which confluent-kafka registers. The
compiler runs as a process of its own: it writes its complaints where only a process can be listened to.
"""

from __future__ import annotations

import base64
import binascii
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from airflow_provider_sinks.core.errors import ConfigurationError, Problem
from airflow_provider_sinks.core.spec.problems import UnfitPartsError

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

MAIN = "sinks_main.proto"
"""Under which name a schema is compiled that has none."""
_COMPILER_SECONDS = 60.0
_LARGEST_BYTES = 4 * 1024 * 1024
_PACKAGES = 'pip install "airflow-provider-sinks[protobuf]" where the driver runs, and on the worker'
_COMPLAINT = re.compile(r"[^\s:]+:")
"""How a line begins that speaks of a file, other than what the compiler logs."""
_BUILT_IN = {
    "confluent/meta.proto": """syntax = "proto3";
package confluent;
import "google/protobuf/descriptor.proto";
message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; }
extend google.protobuf.FileOptions { Meta file_meta = 1088; }
extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }
""",
    "confluent/type/decimal.proto": """syntax = "proto3";
package confluent.type;
message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }
""",
}
"""What Confluent's registry knows by itself, so that schemas import it without a reference."""


@lru_cache(maxsize=256)
def compiled(text: str, references: Sequence[tuple[str, str]] = ()) -> tuple[bytes, str]:
    """Return a serialized ``FileDescriptorSet`` of a file and all that it needs, and the name of the file.

    :param references: the files that it imports, by the names by which it does, what they need first.
    :raises UnfitPartsError: it is no Protobuf, with every problem and its line.
    :raises ConfigurationError: Protobuf's packages are not installed.
    """
    if len(text) > _LARGEST_BYTES:
        raise UnfitPartsError([Problem("", f"is larger than {_LARGEST_BYTES:,} bytes")])
    try:
        from google.protobuf.descriptor_pb2 import FileDescriptorSet
    except ImportError as error:
        raise _not_installed(str(error.name or error)) from error
    known: dict[str, bytes] = {}
    for name, other in (*_BUILT_IN.items(), *references):
        if name in _BUILT_IN and name not in text and not any(name in one for _, one in references):
            continue
        known.update(_files(_checked(name), other, known))
    files = _files(MAIN, text, known)
    main = next(reversed(files))
    whole = FileDescriptorSet()
    for serialized in {**known, **files}.values():
        whole.file.add().ParseFromString(serialized)
    return whole.SerializeToString(deterministic=True), main


def _files(name: str, text: str, known: dict[str, bytes]) -> dict[str, bytes]:
    """Return the serialized files of one text, itself the last one."""
    if (serialized := _serialized(text)) is not None:
        serialized.name = name
        return {**_imported(serialized, known), name: serialized.SerializeToString()}
    return _run(name, text, known)


def _serialized(text: str) -> FileDescriptorProto | None:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import DecodeError

    if not re.fullmatch(r"[A-Za-z0-9+/\s]+={0,2}\s*", text):
        return None
    try:
        return FileDescriptorProto.FromString(base64.b64decode(text, validate=False))
    except (DecodeError, binascii.Error):
        return None


def _imported(file: FileDescriptorProto, known: dict[str, bytes]) -> dict[str, bytes]:
    """Return what a serialized file imports and nobody referred to: Protobuf's own files."""
    missing = [one for one in file.dependency if one not in known]
    if not missing:
        return {}
    text = 'syntax = "proto3";\n' + "".join(f'import "{one}";\n' for one in missing)
    found = _run(MAIN, text, known)
    return {name: one for name, one in found.items() if name != MAIN}


def _run(name: str, text: str, known: dict[str, bytes]) -> dict[str, bytes]:
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    with tempfile.TemporaryDirectory(prefix="sinks-protobuf-") as folder:
        source, made, others = Path(folder, "in", name), Path(folder, "made"), Path(folder, "known")
        source.parent.mkdir(parents=True)
        source.write_text(text, encoding="utf-8")
        whole = FileDescriptorSet()
        for serialized in known.values():
            whole.file.add().ParseFromString(serialized)
        others.write_bytes(whole.SerializeToString())
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{Path(folder, 'in')}"]
        given = [f"--descriptor_set_in={others}"] if known else []
        command += [*given, "--include_imports", f"--descriptor_set_out={made}", str(source)]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=_COMPILER_SECONDS, check=False)
        if ran.returncode:
            raise _said(ran.stderr, str(source), name)
        found = FileDescriptorSet.FromString(made.read_bytes())
    return {one.name: one.SerializeToString() for one in found.file}


def _said(complaints: str, path: str, name: str) -> Exception:
    """Return what the compiler said, line by line, as our error."""
    if "No module named" in complaints:
        return _not_installed(complaints.strip().rpartition("No module named ")[2].strip("'"))
    lines = [line.replace(path, name) for line in complaints.splitlines() if "warning:" not in line]
    errors = [line.removeprefix(f"{name}:").strip() for line in lines if _COMPLAINT.match(line)]
    return UnfitPartsError([Problem("", f"is no Protobuf: {line}") for line in errors or ["no reason given"]])


def _checked(name: str) -> str:
    """Return the name of a file to import; it is a path in a folder of ours.

    :raises UnfitPartsError: it leads out of there.
    """
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name or not name:
        raise UnfitPartsError([Problem("references", f"{name!r} is no name of a file to import")])
    return name


def _not_installed(package: str) -> ConfigurationError:
    problem = Problem("format", f"{package} is not installed")
    return ConfigurationError("Protobuf cannot be read or written", [problem], _PACKAGES)
