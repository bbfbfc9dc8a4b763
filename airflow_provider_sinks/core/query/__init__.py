"""Is the SQL of a sink row-wise? Read, judged and rewritten; names and types of its columns."""
