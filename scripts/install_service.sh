#!/bin/sh
# Installs the service as the image holds it: every file by its hash (deploy/locks), nothing that it does not need.
#   scripts/install_service.sh FOLDER [serve | serve-otel | serve-store]
set -eu
to=$1 lock=${2:-serve}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
install() {
    "$1/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir --no-compile \
        --require-hashes --only-binary :all: --requirement "deploy/locks/$2.txt"
}
python3 -m venv "$work/build"
install "$work/build" build
"$work/build/bin/python" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
    --wheel-dir "$work" .
python3 -m venv "$to"
install "$to" "$lock"
"$to/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile --no-deps --no-index "$work"/textcls-*.whl
# Removed again: flatbuffers and protobuf, which ONNX Runtime declares but only its tools import, though spans are sent
# as protobuf; and what installed all this. scripts/check_image.sh shows that it runs without.
unused="flatbuffers pip setuptools"
[ "$lock" = serve-otel ] || unused="$unused protobuf"
# shellcheck disable=SC2086
"$to/bin/python" -m pip uninstall --yes --quiet $unused
"$to/bin/textcls" serve --help > /dev/null
