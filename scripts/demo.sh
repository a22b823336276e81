#!/bin/sh
# Check the bundled sample, train on it, evaluate, explain one text, serve, ask over HTTP, stop.
set -eu
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
model=$work/tickets.onnx

say() { printf '\n$ %s\n' "$*"; }

say textcls check textcls/demo/support_tickets.csv
textcls check textcls/demo/support_tickets.csv

say textcls train textcls/demo/support_tickets.csv --output tickets.onnx
textcls train textcls/demo/support_tickets.csv --output "$model"

say textcls evaluate tickets.onnx textcls/demo/support_tickets_test.csv
textcls evaluate "$model" textcls/demo/support_tickets_test.csv

say textcls explain tickets.onnx '"my card was charged twice"'
textcls explain "$model" "my card was charged twice"

say textcls serve tickets.onnx --port 0
textcls serve "$model" --port 0 >"$work/log" 2>&1 &
server=$!
url=
for _ in $(seq 100); do
    url=$(sed -n 's/.*\(http:\/\/[0-9.:]*\).*/\1/p' "$work/log" | head -n 1)
    [ -z "$url" ] || break
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
done
cat "$work/log"
[ -n "$url" ] || { echo "the server did not start"; exit 1; }

say "curl -s $url/v1/classify -d '{\"inputs\": \"my card was charged twice\", \"explain\": true}'"
python - "$url" <<'PY'
import json, sys, urllib.request
body = json.dumps({"inputs": "my card was charged twice", "explain": True, "top_k": 2}).encode()
request = urllib.request.Request(sys.argv[1] + "/v1/classify", body, {"content-type": "application/json"})
print(json.dumps(json.load(urllib.request.urlopen(request)), indent=2))
PY
kill -TERM "$server"
wait "$server"
server=
echo
echo "The server has stopped. That was everything."
