"""The parts of the operator that validates connections."""
