"""The parts of the operator that submits a sink's job."""
