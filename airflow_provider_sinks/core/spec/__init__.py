"""What is declared: a sink, its parts, the rules over them, and how it is read from Python and YAML."""
