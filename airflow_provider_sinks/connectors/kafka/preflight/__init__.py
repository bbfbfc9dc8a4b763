"""Whether a Kafka connection and the topics of a sink are fit: what is seen, and how it is judged."""
