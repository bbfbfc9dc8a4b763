.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory
VENV_PYTHON := .venv/bin/python
PYTEST := $(VENV_PYTHON) -m pytest
SECOND_TRY := $(if $(AGAIN),--again)

##@ Start here
.PHONY: help demo setup
help: ## print this help
	@awk 'BEGIN {FS = ":.*## "} \
		/^##@/ {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: jars ## run the main job for real; KEEP=1 leaves everything up
	@$(VENV_PYTHON) scripts/demo $(if $(KEEP),--keep)

setup: ## make .venv with the pinned packages (every target does it when needed)
	@scripts/setup

##@ Check
.PHONY: test lint test-long test-unit test-airflow test-live test-formats test-scenarios test-faults bench bench-postgres bench-lakes bench-formats bench-row bench-parse bench-followers
test: jars quick-start ## lint, docs and the tests, against real services
	@$(MAKE) --jobs=3 lint docs lanes

.PHONY: lanes
lanes:
	@$(VENV_PYTHON) -m tests.lanes $(SECOND_TRY)

test-long: jars quick-start ## what `make test` leaves out: silences, more kills, and the same by another way
	@$(VENV_PYTHON) -m tests.lanes long $(SECOND_TRY)

.PHONY: quick-start
quick-start: setup
	@$(VENV_PYTHON) -m tests.class_archive

lint: setup ## formatting, ruff, dependency direction, mypy --strict
	@scripts/lint

test-unit: setup ## the pure core, in seconds
	@$(PYTEST) tests/unit

test-airflow: setup ## the Airflow side, without services
	@$(PYTEST) tests/airflow

test-live: jars ## with a real broker, Postgres, Spark and Airflow
	@$(PYTEST) tests/live --ignore=tests/live/scenarios

test-formats: jars quick-start ## files, Iceberg, Delta, Avro, JSON Schema, envelopes, changes, replays: in live sinks
	@$(VENV_PYTHON) -m tests.lanes formats $(SECOND_TRY)

test-scenarios: jars ## what takes minutes: lost workers, clears, timeouts, YARN, each example DAG
	@$(PYTEST) tests/live/scenarios

test-faults: jars ## kills, cuts and replaced topics
	@$(PYTEST) tests/faults

bench: jars ## ours beside Spark's own Kafka sink, Flink and others; QUICK=1 in ten minutes, PLOTS=1 draws
	@$(VENV_PYTHON) -m tests.bench $(if $(QUICK),--quick) $(if $(PLOTS),--plots)

bench-postgres: jars ## rows per second into Postgres, ours beside Spark's JDBC writer
	@$(VENV_PYTHON) -m tests.bench.postgres
	@$(VENV_PYTHON) -m tests.bench.postgres_alone

bench-lakes: jars ## rows per second into Iceberg and Delta tables, ours beside their own sinks; 1,000 epochs of each
	@$(VENV_PYTHON) -m tests.bench.lakes
	@$(VENV_PYTHON) -m tests.bench.lake_epochs

bench-formats: jars ## rows per second with Avro, JSON Schema and Protobuf by a registry, beside JSON
	@$(VENV_PYTHON) -m tests.bench.formats

bench-row: jars ## processor time of a row: read as JSON, of many fields, from Spark to Python, and from there into Kafka
	@$(VENV_PYTHON) -m tests.bench.json_values
	@$(VENV_PYTHON) -m tests.bench.wide_rows
	@$(VENV_PYTHON) -m tests.bench.arrow_crossing
	@$(VENV_PYTHON) -m tests.bench.kafka_producers

bench-parse: setup ## how long Airflow takes to read 500 sinks
	@$(VENV_PYTHON) -m tests.bench.parse

bench-followers: setup ## what 1,000 deferred sinks on 10 connections ask of a triggerer
	@$(VENV_PYTHON) -m tests.bench.followers

##@ Package
.PHONY: docs wheel format constraints clean jars
docs: setup ## build the documentation into build/docs; a warning is an error
	@$(VENV_PYTHON) -m mkdocs build --clean

wheel: setup ## build the source distribution and the wheel into dist/; PROJECT_URL= is where they are published
	@$(VENV_PYTHON) -m uv build --quiet --python $(VENV_PYTHON) --build-constraints constraints.txt --out-dir dist

format: setup ## format the code and mend what ruff can mend
	@$(VENV_PYTHON) -m ruff format .
	@$(VENV_PYTHON) -m ruff check --fix .

constraints: setup ## pin again, keeping the versions that still fit
	@$(VENV_PYTHON) -m uv pip compile --quiet pyproject.toml --all-extras --group dev --universal \
		--python-version 3.11 --no-annotate --no-header --output-file constraints.txt

clean: ## remove all that these targets made here
	@rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache *.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

jars: setup
	@$(VENV_PYTHON) -m airflow_provider_sinks.local
