"""An object store as a file system of Arrow's, by the client that delta-rs has for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from deltalake.fs import DeltaStorageHandler


class _TakesBuffers:
    """A stream that takes what Arrow hands over: buffers, of which delta-rs's own takes none."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, data: Any) -> int:
        return int(self._stream.write(bytes(data)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Handler(DeltaStorageHandler):
    def open_output_stream(self, path: str, metadata: dict[str, str] | None = None) -> pa.PythonFile:
        stream = self._handler.open_output_stream(path, metadata)
        return pa.PythonFile(_TakesBuffers(stream), mode="w")


def handler(root: str, options: Mapping[str, str]) -> DeltaStorageHandler:
    """Return what Arrow reads and writes the files of a table by.

    :param options: hold secrets.
    """
    return _Handler(root, dict(options))
