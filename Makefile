# Needs Python 3.11 or newer and make; everything else is installed into virtual environments beside this file.
PYTHON ?= python3
VENV   ?= .venv

DEV    := $(VENV)-dev
MODELS := $(VENV)-models

.PHONY: start test check bench models

start: $(VENV)/installed  ## set up, then archive and index what your agents said
	$(VENV)/bin/palaver up

test: $(DEV)/installed  ## the tests
	$(DEV)/bin/pytest

check: $(DEV)/installed  ## lint, format and types
	$(DEV)/bin/ruff check
	$(DEV)/bin/ruff format --check
	$(DEV)/bin/mypy
	$(DEV)/bin/pyright --pythonpath $(DEV)/bin/python

bench: $(VENV)/installed  ## how well it finds, how fast (bench/README.md names the others)
	@echo "bench.retrieval, then bench.speed; bench/README.md names the other benchmarks"
	$(VENV)/bin/python -m bench.retrieval
	$(VENV)/bin/python -m bench.speed

models: $(MODELS)/installed  ## the tests of the extra `models`: any sentence-transformers model
	$(MODELS)/bin/pytest tests/models

# What pip compiles when it installs, but not what it only links to.
ROOMS := agents archiver core observe search templates src/palaver

# An environment is made anew whenever what belongs in it has changed.
PINS := pyproject.toml constraints.txt

define install
	@echo "Installing into $(@D) (once) ..."
	@$(PYTHON) -m venv --clear $(@D)
	@$(@D)/bin/pip install -q -c constraints.txt --upgrade pip
	@$(@D)/bin/pip install -q -c constraints.txt -e $(1)
	@$(@D)/bin/python -m compileall -q $(ROOMS)
	@touch $@
endef

$(VENV)/installed: $(PINS)
	$(call install,.)

$(DEV)/installed: $(PINS)
	$(call install,. --group dev)

$(MODELS)/installed: $(PINS)
	$(call install,'.[models]' --group models)
