"""The Spark side as a library: source, transform, epochs on the driver, writers on the executors."""
