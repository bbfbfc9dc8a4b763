"""The checker of DAG folders: facts are gathered first, then pure rules judge them.

``reader`` and ``recorder`` read one DAG file in a process of its own and return facts; ``folder`` gathers the
facts of all files; ``rules`` turns facts into findings. Only the reading side imports Airflow.
"""
