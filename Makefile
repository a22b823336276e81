# make demo   train on the bundled sample, evaluate, explain, serve, ask over HTTP
# make test   lint, types, tests; make quick  the same without what starts services, trains or exports for seconds
# make thorough  make test with all that chance draws: killed trainings, damaged files, odd requests; for a release
# make clients  what the tests of the page, of the wire formats and of stores need and skip without: a driver for
#   Chromium, onnxruntime for JavaScript, clients that others wrote, a server that speaks as S3 does; needs npm, downloads 300 MB
# make kernels  the tests of the GPU kernels, in Triton's interpreter; downloads Triton, the newest and the oldest (600 MB)
# make deploy  the Dockerfile through its linter, the manifests through the schemas of Kubernetes, the alerts through
#   promtool, what the image installs through a database of known vulnerabilities
# make lock  deploy/locks anew, after constraints.txt or the dependencies have changed; make sbom  dist/textcls.cdx.json,
#   what the image holds, as CycloneDX; both with the Python of the image, which is 3.11
# make image  build, start and check the image without Docker; needs root, buildah and debootstrap
# make stress  the service under stress, minutes each: benchmarks/stress.json; make serving  its speed; h2load is needed
#   both take MODEL=model.onnx TEXTS=texts.csv
# make attacks  attacks on the service under a memory limit, before and after a change: benchmarks/attacks.md; needs root
#   for a limit that the kernel keeps
# make docs  the guides as a site with search, in build/site; every link in it is checked
# make release  wheel and sdist in dist/, checked, and installed with each extra on every Python that is here
# make wheel  build the wheel, install it alone in a fresh environment, predict with it
#
# PYTHON chooses the interpreter. On Linux, PyPI's PyTorch brings CUDA along (gigabytes); for the CPU build say
#   make test TORCH_INDEX=https://download.pytorch.org/whl/cpu

PYTHON ?= python3
TORCH_INDEX ?=
# The newest and the oldest that pyproject.toml allows. Not among the constraints: a CUDA build of PyTorch wants a Triton
# of its own (2.13 that of 3.7.1). With 3.5.0 the backward of tiles spills 120 bytes at K = 128.
TRITON := 3.9.0
TRITON_OLDEST := 3.6.0
VENV := .venv
TOOLS := .venv-deploy
DOCS := .venv-docs
# Modules are compiled when they are first imported, once for all processes of the tests, and not all at the installation.
PIP := $(VENV)/bin/python -m pip install --quiet --no-compile --disable-pip-version-check --constraint constraints.txt

unexport PYTHONDONTWRITEBYTECODE
# Output that is not buffered hides what happens when a buffer cannot be emptied.
unexport PYTHONUNBUFFERED

.PHONY: clients demo test quick thorough lint types loops docs wheel release kernels deploy lock sbom image stress attacks serving clean

demo: $(VENV)/.demo
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" sh scripts/demo.sh

# Three workers for two processors, since many tests wait for a service to start, to drain, or to give up; a fourth spends
# more on reading all tests than it gains (5:50 and 6:01, one after the other).
test: lint types loops
	$(VENV)/bin/python -m pytest -q -n 3

# Before a release: of what chance draws, all.
thorough: export TEXTCLS_THOROUGH = 1
thorough: test

# What one runs at every step; two workers, since nothing there waits.
quick: lint types loops
	$(VENV)/bin/python -m pytest -q -n 2 -m "not slow"

lint: $(VENV)/.dev
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

types: $(VENV)/.dev
	$(VENV)/bin/mypy

# The loops of training, compiled once: workers of the tests that begin together would each compile them.
loops: $(VENV)/.dev
	mkdir -p build
	$(VENV)/bin/textcls train textcls/demo/support_tickets.csv --epochs 1 --quiet --output build/loops.onnx > build/loops.txt

wheel: $(VENV)/.dev
	sh scripts/check_wheel.sh $(VENV)/bin/python

docs: $(DOCS)/.done
	$(DOCS)/bin/python scripts/docs_site.py build/site

release: $(VENV)/.dev
	sh scripts/release.sh $(VENV)/bin/python

kernels: $(VENV)/.dev
	$(VENV)/bin/python -m pip install --quiet --no-compile --disable-pip-version-check triton==$(TRITON)
	test -d build/triton-$(TRITON_OLDEST) || $(VENV)/bin/python -m pip install --quiet --no-compile --disable-pip-version-check \
	    --no-deps --target build/triton-$(TRITON_OLDEST) triton==$(TRITON_OLDEST)
	TEXTCLS_TRITONS=build/triton-$(TRITON_OLDEST) $(VENV)/bin/python -m pytest -q -n 2 tests/kernels

MODEL ?= tests/golden/model_v1.onnx
TEXTS ?= textcls/demo/support_tickets.csv
MINUTES ?= 10

deploy: $(TOOLS)/.done
	sh scripts/check_deploy.sh $(TOOLS)/bin

lock: $(TOOLS)/.done
	sh scripts/lock.sh $(TOOLS)/bin

sbom: $(TOOLS)/.done
	sh scripts/sbom.sh $(TOOLS)/bin dist/textcls.cdx.json

image:
	bash scripts/check_image.sh $(MODEL) | tee benchmarks/image.txt
	grep -q '^image: ok' benchmarks/image.txt

stress: $(VENV)/.dev
	$(PIP) --requirement benchmarks/requirements.txt
	for what in footprint rolling kill fuzz; do $(VENV)/bin/python benchmarks/stress.py $$what $(MODEL) || exit 1; done
	$(VENV)/bin/python benchmarks/stress.py soak $(MODEL) $(TEXTS) --minutes $(MINUTES)

attacks: $(VENV)/.dev
	$(PIP) --requirement benchmarks/requirements.txt
	$(VENV)/bin/python benchmarks/attacks.py

serving: $(VENV)/.dev
	$(PIP) --requirement benchmarks/requirements.txt
	$(VENV)/bin/python benchmarks/serving.py $(MODEL) $(TEXTS)

clients: $(VENV)/.dev
	$(PIP) playwright
	cd tests/web && ONNXRUNTIME_NODE_INSTALL_CUDA=skip npm install --no-fund --no-audit --no-package-lock
	for client in moto:moto[server]==5.2.5 hub:huggingface_hub==2.4.0 triton:tritonclient[http]==2.73.0 kserve_sdk:kserve==0.21.0; do \
	    $(PYTHON) -m venv .venv-clients/$${client%%:*} && \
	    .venv-clients/$${client%%:*}/bin/python -m pip install --quiet "$${client#*:}" || exit 1; \
	done

clean:
	rm -rf $(VENV) $(TOOLS) $(DOCS) .venv-clients tests/web/node_modules dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(DOCS)/.done: docs/requirements.txt
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --no-compile --disable-pip-version-check --requirement $<
	touch $@

$(TOOLS)/.done: deploy/requirements.txt constraints.txt
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python -m pip install --quiet --no-compile --disable-pip-version-check --constraint constraints.txt --requirement $<
	touch $@

$(VENV)/.torch: constraints.txt | $(VENV)/bin/python
	$(PIP) $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) torch
	touch $@

$(VENV)/.demo: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable '.[serve,train]'
	touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.torch
	$(PIP) --editable '.[dev]'
	touch $@ $(VENV)/.demo
