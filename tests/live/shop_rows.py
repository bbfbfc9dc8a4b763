"""Records of a small shop, for tests of what becomes of each type in a table."""

from __future__ import annotations

from tests.live.stage import KeyValue

SCHEMA = "id int, userid string, price decimal(10,2), at timestamp"
ROWS: list[KeyValue] = [
    ("k", '{"id": 1, "userid": "ann", "price": 1.25, "at": "2026-11-20T10:00:00.123456Z"}'),
    ("k", '{"id": 2, "userid": "bob", "price": 7, "at": "2026-11-21T23:59:59.999999Z"}'),
    ("k", '{"id": 3, "userid": "eve \\u00e9", "price": -0.01}'),
]
FOURTH: KeyValue = ("k", '{"id": 4, "userid": "zoe"}')
