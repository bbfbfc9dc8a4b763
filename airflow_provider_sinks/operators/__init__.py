"""The operators: check what a sink needs, and run its job."""
