"""The sensors: wait until a sink's topics allow a start."""
