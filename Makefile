# `make demo` and `make test` work on a fresh clone: each makes .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL = $(1)/bin/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo serve test lint types imports unit test-random docs bench drills release-check walks peers clean

demo: $(VENV)/.installed
	$(BIN)/tailwise reproduce --demo

# A small model, trained on first use, and the service with its page: http://127.0.0.1:5000/; another: make serve MODEL=folder
MODEL ?= results/demo-model
serve: $(VENV)/.installed
	@test -e $(MODEL)/manifest.json || $(BIN)/python -m tailwise.serving.demo $(MODEL)
	$(BIN)/tailwise serve $(MODEL) $(SERVE)

test: lint types imports unit

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed
	$(BIN)/mypy

imports: $(VENV)/.installed
	$(BIN)/lint-imports

unit: $(VENV)/.installed
	$(BIN)/python -m pytest -n 2 --dist worksteal

# Explores: properties alone, on fresh examples and more of them. What fails is printed with the line that repeats it.
test-random: $(VENV)/.installed
	TAILWISE_TEST_PROFILE=random $(BIN)/python -m pytest -n 2 --dist worksteal -m hypothesis --timeout 1800

# Into site/dev, listed in the menu of versions beside what stands there; of a release: make docs VERSION=0.2
VERSION ?= dev
docs: $(VENV)/.installed
	$(BIN)/sphinx-build --builder html --fail-on-warning --keep-going --quiet --define docs_version=$(VERSION) docs site/$(VERSION)

# One question a file: make bench QUESTION=reader
QUESTION ?= all
bench: $(VENV)/.installed peers
	$(BIN)/python -m benchmarks $(QUESTION)

# Accidents on purpose, in modest numbers; more of one: python -m drills kill --count 1000
drills: $(VENV)/.installed
	-$(call PIP_INSTALL,$(VENV)) --constraint constraints.txt --editable '.[drills]'
	$(BIN)/python -m drills all

# What a release would do where it is installed. torch is large: make release-check CHECK="--skip neural"
release-check:
	$(PYTHON) tools/release_check.py $(CHECK)

# Five first hours with the wheel in an empty environment: make walks WALK=librarian
walks:
	$(PYTHON) tools/walks.py $(WALK)

peers: .venv-peers/.installed .venv-pecos/.installed .venv-annif/.installed .venv-cleanlab/.installed

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(call PIP_INSTALL,$(VENV)) --constraint constraints.txt --editable '.[neural,ann,report,parquet,excel,skos,encoder,language,download,audit,serve,tune,dask,dev]'
	@touch $@

# Peers keep to themselves: their pins must not reach ours. One that does not install is absent, not an error.
.venv-peers/.installed: constraints.txt
	$(PYTHON) -m venv .venv-peers
	$(call PIP_INSTALL,.venv-peers) --constraint constraints.txt torch psutil
	-$(call PIP_INSTALL,.venv-peers) napkinxc
	-$(call PIP_INSTALL,.venv-peers) omikuji
	-$(call PIP_INSTALL,.venv-peers) liblinear-official
	-$(call PIP_INSTALL,.venv-peers) --constraint constraints.txt libmultilabel
	@touch $@

# libpecos wants numpy 1: it has an environment of its own.
.venv-pecos/.installed: constraints.txt
	$(PYTHON) -m venv .venv-pecos
	-$(call PIP_INSTALL,.venv-pecos) --constraint constraints.txt torch
	-$(call PIP_INSTALL,.venv-pecos) 'numpy<2' libpecos
	@touch $@

# Annif brings a web server and much else; tests compare with it where it is there.
.venv-annif/.installed: constraints.txt
	$(PYTHON) -m venv .venv-annif
	-$(call PIP_INSTALL,.venv-annif) 'annif[omikuji]>=1.4,<1.5'
	-$(call PIP_INSTALL,.venv-annif) --editable '.[annif]'
	@touch $@

# cleanlab holds scikit-learn and numpy to versions of its own.
.venv-cleanlab/.installed: constraints.txt
	$(PYTHON) -m venv .venv-cleanlab
	-$(call PIP_INSTALL,.venv-cleanlab) cleanlab
	@touch $@

clean:
	rm -rf $(VENV) .venv-peers .venv-pecos .venv-annif .venv-cleanlab build dist site
