#!/bin/sh
# Build wheel and sdist into dist/, check them, and install them with each extra on every Python that is here: with the
# versions of constraints.txt, and on the first Python with the oldest that pyproject.toml allows.
#   release.sh PYTHON        PYTHON has the packages of the extra dev
#   PYTHONS="python3.12"     which Pythons, in the place of all three
#   EXTRAS="base serve"      which extras, in the place of all
# An extra is not only installed: something that needs it is run. Nothing is uploaded.
set -eu
builder=$1
pythons=${PYTHONS:-python3.11 python3.12 python3.13}
extras=${EXTRAS:-base serve otel parquet tables train torch all tune annotate teacher ray mlflow}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

rm -rf dist
"$builder" -m venv "$work/tools"
"$work/tools/bin/python" -m pip install --quiet --disable-pip-version-check --constraint constraints.txt build twine
# The wheel is built of the sdist, so that what is in neither is noticed.
"$work/tools/bin/python" -m build --outdir dist . >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
"$work/tools/bin/twine" check --strict dist/*
wheel=$(ls "$PWD"/dist/*.whl)
cp tests/golden/model_v1.onnx tests/golden/answers_v1.json textcls/demo/support_tickets_test.csv "$work"

# What each extra is there for, in one line that fails without it.
try() {
    case $1 in
    base) textcls predict model_v1.onnx support_tickets_test.csv --output answers.csv --quiet && textcls --version ;;
    serve) textcls serve --help && python -c "import fastapi, orjson, uvicorn, httptools; import textcls.server.processes.run" ;;
    otel) python -c "import opentelemetry.sdk, opentelemetry.exporter.otlp.proto.http" ;;
    parquet) textcls predict model_v1.onnx support_tickets_test.csv --output answers.parquet --quiet ;;
    tables) textcls predict model_v1.onnx support_tickets_test.csv --output answers.xlsx --quiet ;;
    train | all) textcls train support_tickets_test.csv --epochs 1 --output new.onnx --quiet &&
        textcls evaluate new.onnx support_tickets_test.csv ;;
    torch) textcls train support_tickets_test.csv --mixing lambda --epochs 1 --output new.onnx --quiet ;;
    annotate) python -c "import openai" && textcls annotate --help ;;
    mlflow) python -c "import mlflow" ;;
    tune) # In a folder of its own: it leaves settings and a journal, from which the next Python would go on.
        rm -rf tune && mkdir tune && cd tune &&
            textcls tune ../support_tickets_test.csv --trials 2 --rounds 1 --folds 2 --epochs 1 --quiet ;;
    ray) python -c "import ray" && textcls predict model_v1.onnx support_tickets_test.csv --output answers/ --engine ray --quiet ;;
    teacher) python -c "import sentence_transformers" ;;
    *) echo "no such extra: $1" && return 1 ;;
    esac
}

status=0
# Install the wheel with an extra on a Python, to the versions that a file pins, and try it: check PYTHON EXTRA FILE
check() {
    rm -rf "$work/venv"
    "$1" -m venv "$work/venv"
    what=$wheel
    [ "$2" = base ] || what="$wheel[$2]"
    if "$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check --constraint "$3" "$what" \
        >"$work/log" 2>&1 && (cd "$work" && PATH="$work/venv/bin:$PATH" && export PATH && try "$2") >>"$work/log" 2>&1; then
        echo "$("$1" -V) $2, $(basename "$3"): ok"
    else
        tail -n 5 "$work/log"
        echo "$("$1" -V) $2, $(basename "$3"): FAILED"
        status=1
    fi
}

"$builder" scripts/oldest.py >"$work/oldest.txt"
first=
for name in $pythons; do
    python=$(command -v "$name") || { echo "$name: not here, skipped"; continue; }
    first=${first:-$python}
    for extra in $extras; do check "$python" "$extra" constraints.txt; done
done
# What pyproject.toml allows has an old end, too; the newest Pythons have no wheels of it.
for extra in ${first:+base serve all tune}; do check "$first" "$extra" "$work/oldest.txt"; done
exit $status
