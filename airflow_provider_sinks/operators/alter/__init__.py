"""The parts of the operator that alters a connection under running sinks."""
