# make demo   train on the bundled sample, evaluate, explain, serve, ask over HTTP
# make test   lint, types, tests
# make kernels  the tests of the GPU kernels, in Triton's interpreter; downloads Triton (286 MB)
# make wheel  build the wheel, install it alone in a fresh environment, predict with it
#
# PYTHON chooses the interpreter. On Linux, PyPI's PyTorch brings CUDA along (gigabytes); for the CPU build say
#   make demo TORCH_INDEX=https://download.pytorch.org/whl/cpu

PYTHON ?= python3
TORCH_INDEX ?=
VENV := .venv
PIP := $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test lint types wheel kernels clean

demo: $(VENV)/.demo
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" sh scripts/demo.sh

test: lint types
	$(VENV)/bin/python -m pytest -q -n 2

lint: $(VENV)/.dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

types: $(VENV)/.dev
	$(VENV)/bin/mypy

wheel: $(VENV)/.dev
	sh scripts/check_wheel.sh $(VENV)/bin/python

kernels: $(VENV)/.dev
	$(PIP) triton
	$(VENV)/bin/python -m pytest -q -n 2 tests/kernels

clean:
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.torch: constraints.txt | $(VENV)/bin/python
	$(PIP) $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) torch
	touch $@

$(VENV)/.demo: pyproject.toml $(VENV)/.torch
	$(PIP) --editable '.[serve,train]'
	touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.torch
	$(PIP) --editable '.[dev]'
	touch $@ $(VENV)/.demo
