"""Benchmarks: ours beside what others use, in one run, as ratios. ``make bench`` runs the one for Kafka."""
