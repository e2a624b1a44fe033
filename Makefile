# make test is the whole gate; every target installs what it needs into .venv first.

# Python 3.11, 3.12 or 3.13. `make test PYTHON=python3.12` replaces a .venv of another version.
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || \
	command -v python3)
VENV := .venv
BIN := $(VENV)/bin
ASK_VERSION := -c 'import sys; print("%d.%d" % sys.version_info[:2])'
VERSION := $(shell $(PYTHON) $(ASK_VERSION))
INSTALLED := $(VENV)/.installed-$(VERSION)
PACKAGES := ir dialects backends passes tools

.PHONY: demo test lint style types suite bench conformance fuzz forms scan reference docs install \
	release

SECONDS ?= 300

demo: install
	$(BIN)/abele demo --scan demo.png
	@echo "To put abele on the path of this shell: source $(BIN)/activate"

# Types are checked beside the tests, which leave a core idle while they wait for other programs.
test: style
	$(MAKE) --no-print-directory --jobs 2 types suite

lint: style types

style: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/.typed

# Two minutes of a core, so only if a source, or what is installed, has changed since it passed.
$(VENV)/.typed: $(INSTALLED) $(shell find $(PACKAGES) -name __pycache__ -prune -o \
		\( -type d -o -name '*.py' \) -print)
	$(BIN)/basedpyright
	touch $@

# The budget is in CONTRIBUTING.md; `make suite COSTS=FILE` writes what each test takes of it.
# Properties have two fifths of the examples that their tests name.
suite: install
	$(BIN)/python -m pytest -n 2 --dist worksteal --maxfail 20 --durations 20 -m 'not large' \
	  --times 0.4 $(if $(COSTS),--log-cost $(COSTS))

bench: install
	$(BIN)/abele bench light
	$(BIN)/abele bench planning
	$(BIN)/abele bench comparator
	$(BIN)/abele bench fidelity
	$(BIN)/abele bench graphs
	$(BIN)/python -m abele.tools.workshop.proofs $(addprefix --rules tests/tools/proving/,public.rw public_wrong.rw)
	$(BIN)/python -m abele.tools.workshop.kernel_faults
	$(BIN)/python -m pytest -n 2 --dist worksteal -m large

# The ONNX node suite of the installed onnx package, operator by operator. Then JAX's own cases of
# its primitives, where JAX and absl-py are installed, and StableHLO's interpreter tests from the
# folder STABLEHLO, stablehlo/tests/interpret of github.com/openxla/stablehlo.
conformance: install
	$(BIN)/python -m abele.tools.workshop.conformance
	if $(BIN)/python -c 'import jax, absl' 2> /dev/null; then \
	  $(BIN)/python -m abele.tools.workshop.stablehlo.bench --jobs 2; fi
	if [ -n "$(STABLEHLO)" ]; then \
	  $(BIN)/python -m abele.tools.workshop.stablehlo.bench --folder $(STABLEHLO); fi

# Each pass, rule, level and importer, on programs that nobody has seen, for SECONDS each; then
# damaged and absurd inputs of all kinds, for SECONDS in all; then each property of the tests, on ten
# times as many examples as its test names; then all forms of kernels.
fuzz: install
	$(BIN)/abele fuzz --seconds $(SECONDS) --jobs 2
	$(BIN)/abele fuzz --hostile --seconds $(SECONDS) --jobs 2
	$(BIN)/python -m abele.tools.testing.all_floats --seconds $(SECONDS) --seed $$(date +%s)
	$(BIN)/python -m pytest -n 2 --dist worksteal -m 'hypothesis and not large' --times 10
	$(MAKE) --no-print-directory forms

# Each form of kernels, whatever the host would choose: tests of machines and programs, then all light
# networks and ten times as many programs as make test has time for, against NumPy alone.
forms: install
	for form in wide narrow plain; do \
	  ABELE_KERNELS=$$form $(BIN)/python -m pytest -n 2 --dist worksteal -m 'not large' \
	    tests/backends tests/test_*.py || exit 1; \
	done
	$(BIN)/python -m pytest -n 2 --dist worksteal tests/tools/test_networks.py -k each_form
	$(BIN)/python -m pytest -n 2 --dist worksteal tests/backends/host --times 10 --programs 2000

# A picture of every vertex and edge of ResNet-50. docs/gallery.md says how the one at the head of the
# README, a step of training AlexNet, is drawn.
scan: install
	$(BIN)/python -m abele.tools.views.scan resnet50 --size 2048 --quality 84

# What the definitions say, as pages of docs/reference, and the picture of the design page's example;
# make test finds out when they are stale.
reference: install
	$(BIN)/python -m abele.tools.manual docs/reference
	$(BIN)/python -m abele.tools.manual.way_down docs/design.md docs/way_down.svg
	$(BIN)/python -m abele.tools.views.syntax.textmate editors

# Whether this checkout can be released: its version and changes, sdist and wheel in dist/, and the
# wheel in an empty environment of each Python that is found. Needs the network, for dependencies.
release: install
	$(BIN)/python -m abele.tools.release

# All documentation as one searchable site, at http://127.0.0.1:8000.
docs: install
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs serve

install: $(INSTALLED)

# The install is editable: new files need none, only a changed pyproject.toml does. setuptools warns
# at every editable install that folders may shadow packages; tests/test_packages.py checks that.
$(INSTALLED): pyproject.toml
	[ "$$($(BIN)/python $(ASK_VERSION) 2>/dev/null)" = "$(VERSION)" ] || \
	  $(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	PYTHONWARNINGS='ignore:Editable installation' \
	  $(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@
