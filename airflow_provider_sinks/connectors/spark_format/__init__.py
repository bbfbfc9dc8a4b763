"""Any format of Spark's: its own writer writes the rows, and its own guarantee holds."""
