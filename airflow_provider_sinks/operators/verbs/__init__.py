"""Parts of the operators that do a verb of a sink's life."""
