"""SET, DROP and RESET of a connection's options under running sinks, as data."""
