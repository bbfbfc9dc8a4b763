"""The statement form of an alteration."""

from __future__ import annotations

import pytest

from airflow_provider_sinks.core.alter.changes import DropOption, ResetOption, Secret, SetOption
from airflow_provider_sinks.core.alter.statement import Statement, parse_statement
from airflow_provider_sinks.core.errors import ConfigurationError


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        pytest.param(
            "ALTER CONNECTION kafka_prod SET (bootstrap.servers = 'b:9092')",
            Statement("kafka_prod", (SetOption("bootstrap.servers", "b:9092"),)),
            id="set",
        ),
        pytest.param(
            'alter connection kafka_prod set (client.id x, "socket.timeout.ms" 1000);',
            Statement("kafka_prod", (SetOption("client.id", "x"), SetOption("socket.timeout.ms", "1000"))),
            id="small-letters-no-equals-sign-quoted-name",
        ),
        pytest.param(
            "ALTER CONNECTION k SET (a = 'it''s'), -- why\n DROP (b, c), RESET (d) WITH (VALIDATE = false)",
            Statement(
                "k",
                (SetOption("a", "it's"), DropOption("b"), DropOption("c"), ResetOption("d")),
                {"validate": False},
            ),
            id="all",
        ),
        pytest.param(
            "ALTER CONNECTION k SET (sasl.password = SECRET sinks_secret_new)",
            Statement("k", (SetOption("sasl.password", Secret("sinks_secret_new")),)),
            id="secret",
        ),
        pytest.param(
            "ALTER CONNECTION k DROP (a) WITH (DRY RUN, rollback = FALSE, RESTART true)",
            Statement("k", (DropOption("a"),), {"dry_run": True, "rollback": False, "restart": True}),
            id="flags",
        ),
    ],
)
def test_a_statement_says(text: str, statement: Statement) -> None:
    assert parse_statement(text) == statement


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "character 1: expected ALTER, found the end"),
        ("ALTER TABLE t SET (a = 1)", "character 7: expected CONNECTION, found another word"),
        ("ALTER CONNECTION k", "character 19: expected SET, DROP or RESET, found the end"),
        ("ALTER CONNECTION k SET a = 1", 'character 24: expected "(", found another word'),
        ("ALTER CONNECTION k SET (a = )", 'character 29: expected a value for a, found ")"'),
        ("ALTER CONNECTION k SET (a = 1", 'expected ")", found the end'),
        ("ALTER CONNECTION k DROP (a) RESET (b)", 'character 29: expected "," and SET, DROP or RESET'),
        ("ALTER CONNECTION k DROP (a) WITH (VALIDAET = false)", 'did you mean "VALIDATE"?'),
        ("ALTER CONNECTION k SET (a = 'told)", "character 29: cannot be read from here on"),
        ("ALTER CONNECTION k SET (a = 'x' 'told')", 'expected ")", found a text in quotes'),
        ("ALTER CONNECTION k SET (a = x told)", 'expected ")", found another word'),
    ],
)
def test_a_place_that_cannot_be_read_is_named_and_not_quoted(text: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_statement(text)

    assert said in str(refused.value)
    assert "told" not in str(refused.value)
