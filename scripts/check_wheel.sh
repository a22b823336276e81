#!/bin/sh
# Build the wheel, install it alone in a fresh environment, and predict with the frozen model: no PyTorch, no extras.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1" -m build --wheel --outdir "$work" . >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
"$1" -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check --constraint constraints.txt "$work"/*.whl
cp tests/golden/model_v1.onnx textcls/demo/support_tickets_test.csv "$work"
cd "$work"
for package in torch onnx triton sklearn fastapi; do
    if venv/bin/python -c "import $package" 2>/dev/null; then echo "$package came along with the base wheel"; exit 1; fi
done
venv/bin/textcls predict model_v1.onnx support_tickets_test.csv --output answers.csv --explain
venv/bin/textcls explain model_v1.onnx "my card was charged twice"
[ "$(head -c 51 answers.csv)" = "text,label,predicted_label,score,decision,explanati" ]
if venv/bin/textcls train support_tickets_test.csv 2>message; then echo "train ran without PyTorch"; exit 1; fi
grep -q 'pip install "textcls\[train\]"' message
echo "wheel: ok"
