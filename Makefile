# Two commands do everything: `make run` (a whole night on this computer) and `make test` (what a change can break).
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

# uv trusts what this system trusts, also the authority of a company; without such a file it has a list of its own.
ifneq ($(wildcard /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/ca-bundle.pem),)
export UV_SYSTEM_CERTS ?= true
endif

.PHONY: audit-dependencies sbom help run up test test-all quick docs check lint types format bench peers history soak chaos fuzz engine engines spark lock clean
.DEFAULT_GOAL := run

help:  ## this list
	@sed -nE 's/^([a-z-]+):.*  ## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | sort | expand -t 20

run: $(STAMP)  ## a whole night on this computer, into ./data
	$(BIN)/nightbench run suites/local.toml --target local

up: $(STAMP)  ## the service: nights on a schedule, with the Prefect UI
	$(BIN)/nightbench up

# Most tests wait for a server, an engine or a clock, so there are more workers than a laptop has free cores; no test
# may depend on how fast the host is.
WORKERS ?= 4
# Without bytecode, each of a hundred processes of ours would compile the same modules once more.
PYTEST = env -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest

# Runs the tests of a target, and another target beside them, which is reported after them.
define tests_beside
	mkdir -p build
	@$(MAKE) --no-print-directory $(1) >build/$(1).txt 2>&1 & beside=$$!; \
	$(PYTEST) --numprocesses $(WORKERS) $(TESTS_$@) && tests=passed || tests=failed; \
	wait $$beside && beside=passed || beside=failed; \
	cat build/$(1).txt; echo "make $@: tests $$tests; $(1) $$beside"; \
	[ $$tests$$beside = passedpassed ]
endef

TESTS_test = -m "not matrix" --times=build/test-times.json
test: lint  ## what a change can break: format, lint, types, imports, tests
	$(call tests_beside,types)

# Only what `make test` leaves out, so the two together run every test once: more cases of a matrix of which `make test`
# runs some, and further published works on the real engine. Which these are: `pytest -m matrix --collect-only -qq`. Only
# files that use the marker are imported.
TESTS_test-all = -m matrix --times=build/test-all-times.json \
  $$(grep -rlE 'mark\.matrix|matrix\(' tests --include='test_*.py')
test-all: $(STAMP)  ## the tests that make test leaves out: larger matrices, more published works; and the docs
	$(call tests_beside,docs)

# By the import graph of what differs from the branch main, or from a commit: `make quick SINCE=HEAD`. The nearest tests
# run first; the times of the last `make test` decide what one minute holds, and what it does not hold is listed.
SINCE ?= main
quick: $(STAMP)  ## the tests that a change can reach, at most a minute of them
	$(BIN)/python -m tests.quick $(SINCE)

check: lint types  ## format, lint, types and imports, without tests

lint: $(STAMP)  ## format and lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(STAMP)  ## types and imports
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)  ## format the code and fix what ruff can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# One table of every bar. `make bench BENCH=--quick` leaves out what takes over a minute, `make bench BENCH=audit_speed`
# runs one benchmark, `make bench BENCH=--record` keeps the values in benchmarks/bars.json.
BENCH ?=
bench: $(STAMP)  ## measure Nightbench itself: one table of every bar
	$(BIN)/python -m benchmarks $(BENCH)

# Every test, with all combinations of the matrices of which `make test` and `make test-all` run one case for each pair of
# values (kills of a night, storms), and then 10,000 random nights: several hours.
soak: $(STAMP)  ## every test with every combination, then 11,000 random nights; hours
	mkdir -p build
	SOAK=1 $(PYTEST) --numprocesses $(WORKERS) --times=build/soak-times.json
	$(BIN)/python -m tests.chaos 10000 --seed 0
	$(BIN)/python -m tests.chaos 1000 --seed 20000

# Random nights with random faults, killed at random moments: `make chaos NIGHTS=1000`, `make chaos NIGHTS=1 SEED=42`. A run
# that was stopped is continued by the seed that its last line names: `make chaos NIGHTS=9000 SEED=1000`.
NIGHTS ?= 100
chaos: $(STAMP)  ## random nights with random faults: NIGHTS=100 SEED=0
	$(BIN)/python -m tests.chaos $(NIGHTS) $(if $(SEED),--seed $(SEED))

# Arbitrary bytes for everything that reads foreign files: `make fuzz SECONDS=600`; ends at the first crash.
SECONDS ?= 120
fuzz: $(STAMP)  ## arbitrary bytes for every reader of foreign files: SECONDS=120
	$(BIN)/python -c 'import atheris' 2>/dev/null || $(BIN)/uv pip install --quiet --python $(BIN)/python atheris
	$(BIN)/python -m tests.fuzz.importers -max_total_time=$(SECONDS) -rss_limit_mb=4096 .venv/corpus

# The newest releases of other load tools, each in an environment of its own, against a server of known times: exit 1
# where the audit rejects a clean run. Ten minutes and 2 GB the first time; run it when a release changes.
PEERS ?=
peers: $(STAMP)  ## the newest load tools against a server of known times
	$(BIN)/python -m benchmarks.peers $(PEERS)

# `make history NIGHTS=5` until each release has five nights; stop it and say it again at any time. About a minute a night.
history: $(STAMP)  ## nights of every release of the engines into a data set: NIGHTS=5
	$(BIN)/python -m benchmarks.history $(if $(filter command line,$(origin NIGHTS)),$(NIGHTS),5) $(HISTORY)

engine: $(STAMP)  ## build the environment of vLLM on CPU
	$(BIN)/python -m infra.engines.venv

# Every engine that can run without a container: vLLM, and llama.cpp, which takes 6 minutes of CPU time to compile.
engines: $(STAMP)  ## build every engine that runs without a container
	$(BIN)/python -m infra.engines.install

# The twelve questions in Spark: it needs Java 17 and is too large (0.5 GB) for the environment of every checkout.
spark: $(STAMP)  ## ask Spark the twelve questions; needs Java 17
	$(BIN)/uv pip install --python $(BIN)/python --quiet --require-hashes -r requirements/spark.lock.txt
	$(PYTEST) tests/warehouse/test_other_engines.py

# Python 3.11 to 3.13. The environment is made anew when a lock changes; the installer keeps what it already has.
$(STAMP): requirements/bootstrap.lock.txt requirements/pipeline.lock.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
	  || { echo "Nightbench needs Python 3.11, 3.12 or 3.13; $(PYTHON) is $$($(PYTHON) --version 2>&1). Say make PYTHON=/path/to/python3.11" >&2; exit 2; }
	@echo "building .venv from requirements/pipeline.lock.txt" >&2
	[ -x $(BIN)/pip ] || $(PYTHON) -m venv --clear .venv
	$(BIN)/pip install --quiet --require-hashes -r requirements/bootstrap.lock.txt
	$(BIN)/uv pip install --python $(BIN)/python --compile-bytecode --require-hashes -r requirements/pipeline.lock.txt
	$(BIN)/uv pip install --python $(BIN)/python --quiet --no-deps --no-build-isolation --editable .
	touch $@

# The site of docs/, in an environment of its own; a link or an anchor that leads nowhere is an error.
DOCS := build/docs-venv
docs: $(DOCS)/.installed  ## build the site of the documentation in build/docs; a dead link is an error
	rm -rf build/docs
	$(DOCS)/bin/sphinx-build --quiet --fail-on-warning --keep-going -c docs . build/docs
	@echo "the documentation is in build/docs/README.html"

$(DOCS)/.installed: requirements/docs.lock.txt $(STAMP)
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(DOCS)
	$(BIN)/uv pip install --quiet --python $(DOCS)/bin/python --require-hashes -r requirements/docs.lock.txt
	touch $@

# A package that cannot be looked up is an error too: it is not known to be safe.
SECURITY := build/security-venv
LOCKS := bootstrap docs machine pipeline security
audit-dependencies: $(SECURITY)/.installed  ## known vulnerabilities of every locked package; exit 1 if there is one
	for name in $(LOCKS); do \
	  echo "requirements/$$name.lock.txt" >&2; \
	  $(SECURITY)/bin/pip-audit --strict --require-hashes --disable-pip -r requirements/$$name.lock.txt; \
	done

sbom: $(SECURITY)/.installed  ## the packages of the pipeline as CycloneDX, into build/sbom.cdx.json
	mkdir -p build
	$(SECURITY)/bin/cyclonedx-py requirements --output-reproducible --of JSON -o build/sbom.cdx.json \
	  requirements/pipeline.lock.txt
	@echo "the list of packages is in build/sbom.cdx.json"

$(SECURITY)/.installed: requirements/security.lock.txt $(STAMP)
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(SECURITY)
	$(BIN)/uv pip install --quiet --python $(SECURITY)/bin/python --require-hashes -r requirements/security.lock.txt
	touch $@

# A new lock is only committed if tests/flows/test_scheduled.py passes with it: a newer sqlalchemy once kept every
# scheduled night from starting, and no other test noticed.
lock: $(STAMP)  ## renew the lock files in requirements/
	for name in bfcl bootstrap docs llama_cpp lm_eval machine pipeline security spark; do \
	  $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	    --no-emit-index-url --no-emit-find-links requirements/$$name.in \
	    $$([ ! -e requirements/$$name.overrides.txt ] || echo --override requirements/$$name.overrides.txt) -o requirements/$$name.lock.txt; \
	done
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-deps \
	  --no-emit-index-url --no-emit-find-links requirements/docker_worker.in -o requirements/docker_worker.lock.txt
	@echo "before you commit a lock: make && .venv/bin/pytest tests/flows/test_scheduled.py (what is scheduled starts)"

clean:  ## delete .venv and the caches of the tools
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
