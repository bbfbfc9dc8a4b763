"""What is true and what to do: pure rules, with the standard library, pydantic and sqlglot only."""
