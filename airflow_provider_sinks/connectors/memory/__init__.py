"""The memory connector: a target in one process, the reference of the contract suite."""
