#!/usr/bin/env bash
# Builds the image on a machine without Docker, starts it as its own user, asks it for an explained answer, and prints
# what it weighs, part by part.
#   scripts/check_image.sh [MODEL.onnx]        (by default the small frozen model of the tests)
# Needs root and: apt-get install --no-install-recommends buildah debootstrap crun
# The base is a Debian with Python 3.11 made here, under the name python:3.11-slim; it is kept for the next time.
set -euo pipefail
cd "$(dirname "$0")/.."
MODEL=$(realpath "${1:-tests/golden/model_v1.onnx}") PORT=${PORT:-8000}
BASE=docker.io/library/python:3.11-slim TAG=localhost/textcls:check
CACHE=${IMAGE_CHECK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/image_check}
CA=/etc/ssl/certs/ca-certificates.crt
mkdir -p "$CACHE"; TMP=$(mktemp -d)
B() { buildah --storage-driver vfs --root "$CACHE/store" --runroot "$CACHE/run" "$@"; }
container= server=
cleanup() {
    set +e
    [ -n "$server" ] && kill -TERM -- "-$server" 2>/dev/null && wait "$server" 2>/dev/null
    [ -n "$container" ] && B rm "$container" >/dev/null
    B rmi -f "$TAG" >/dev/null 2>&1
    rm -rf "$TMP"
}
trap cleanup EXIT

if ! B inspect --type image "$BASE" >/dev/null 2>&1; then
    mirror=$(awk '/^URIs:/{print $2; exit}' /etc/apt/sources.list.d/debian.sources)
    debootstrap --variant=minbase --include=python3,python3-venv,python3-pip,ca-certificates bookworm "$TMP/root" "$mirror" >/dev/null
    rm -rf "$TMP"/root/var/cache/apt/archives/*.deb "$TMP"/root/var/lib/apt/lists/* "$TMP"/root/usr/share/{doc,man,locale}/*
    rm -f "$TMP"/root/usr/lib/python3*/EXTERNALLY-MANAGED; : > "$TMP/root/etc/pip.conf"
    ln -sf python3 "$TMP/root/usr/bin/python"
    made=$(B from scratch); B add -q "$made" "$TMP/root" / >/dev/null
    B config --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin --env LANG=C.UTF-8 "$made"
    B commit -q --format docker "$made" "$BASE" >/dev/null; B rm "$made" >/dev/null; rm -rf "$TMP/root"
fi

# The context is what is committed, and the model; a line more copies it in, as an image with its model would.
git archive HEAD | tar -x -C "$TMP" --one-top-level=context
mkdir "$TMP/context/models"; cp "$MODEL" "$TMP/context/models/"; chmod -R a+rX "$TMP/context/models"
echo '!models' >> "$TMP/context/.dockerignore"; echo 'COPY models /models' >> "$TMP/context/Dockerfile"
printf '[global]\ncert = %s\ndisable-pip-version-check = true\n' "$CA" > "$TMP/pip.conf"
mounts=(-v "$TMP/pip.conf:/etc/pip.conf:ro"); [ -f "$CA" ] && mounts+=(-v "$CA:$CA:ro")
wheels=$(python3 -m pip config get :env:.find-links 2>/dev/null || true)
if [ -n "$wheels" ] && [ -d "$wheels" ]; then mounts+=(-v "$wheels:$wheels:ro"); echo "find-links = $wheels" >> "$TMP/pip.conf"; fi
B bud --isolation chroot --pull=never --format docker --network host "${mounts[@]}" -t "$TAG" "$TMP/context" >"$TMP/log" 2>&1 \
    || { tail -30 "$TMP/log"; exit 1; }

size() { B inspect --type image --format '{{.FromImageID}}' "$1" >/dev/null && B images --format '{{.Size}}' "$1" | head -n 1; }
echo "image $(size "$TAG"), of which the base is $(size "$BASE")"
container=$(B from --pull=never "$TAG"); root=$(B mount "$container")
python3 - "$root/opt/textcls" "$root/models" <<'PY'
import sys
from pathlib import Path

# Files with several names are counted once.
def megabytes(*paths):
    seen = {p.stat().st_ino: p.stat().st_size for path in paths for p in [path, *path.rglob("*")] if p.is_file() and not p.is_symlink()}
    return sum(seen.values()) / 1e6

site = next(Path(sys.argv[1]).glob("lib/python3*/site-packages"))
own = {"onnxruntime": megabytes(site / "onnxruntime"), "numpy": megabytes(site / "numpy", site / "numpy.libs")}
others = sorted(((megabytes(p), p.name) for p in site.iterdir() if p.name not in ("onnxruntime", "numpy", "numpy.libs")), reverse=True)
rest = megabytes(Path(sys.argv[1])) - sum(own.values())
for name, size in [*own.items(), ("the rest, at most 60", rest), *((name, size) for size, name in others[:12]), ("the model", megabytes(Path(sys.argv[2])))]:
    print(f"{size:8.1f} MB  {name}")
found = [name for name in ("torch", "triton", "pip", "sympy", "google/protobuf") if (site / name).exists()]
compilers = [name for name in ("gcc", "cc", "ld", "strip") if (Path(sys.argv[1]).parents[1] / "usr/bin" / name).exists()]
sys.exit(f"too large, or {found + compilers} came along" if rest > 60 or found or compilers else 0)
PY

# The root belongs to root and the process does not: it can write where /dev/shm or /tmp let it, as when read-only.
chmod -R go-w "$root/opt" "$root/models"
begun=$(date +%s%N)
setsid buildah --storage-driver vfs --root "$CACHE/store" --runroot "$CACHE/run" run --isolation chroot --user 10001 \
    "$container" -- textcls serve --no-auth --port "$PORT" >"$TMP/run" 2>&1 &
server=$!
for _ in $(seq 500); do curl -fs "http://127.0.0.1:$PORT/readyz" >/dev/null && break; sleep .02; done
echo "ready after $(( ($(date +%s%N) - begun) / 1000000 )) ms"
python3 deploy/smoke.py "http://127.0.0.1:$PORT"
curl -fsi "http://127.0.0.1:$PORT/v1/classify" -H 'content-type: application/json' \
    -d '{"inputs": "my card was charged twice", "explain": true, "top_k": 1}' | sed -n '1p;/^x-model/p;$p' | cut -c1-300
B run --isolation chroot --user 10001 "$container" -- /opt/textcls/bin/python -c \
    "import urllib.request; print('healthcheck', urllib.request.urlopen('http://127.0.0.1:$PORT/readyz', timeout=2).status)"
for pid in $(pgrep -g "$server"); do
    grep -qa buildah "/proc/$pid/cmdline" || awk '/^Uid|^VmRSS/{printf "%s %s  ", $1, $2}' "/proc/$pid/status"
done
echo
kill -TERM -- "-$server"; wait "$server" 2>/dev/null || true; server=

# With podman and runc: in namespaces of its own, nothing writable but /dev/shm, no capabilities.
if command -v podman >/dev/null && command -v runc >/dev/null; then
    P() { podman --root "$CACHE/store" --runroot "$CACHE/run" --storage-driver vfs --runtime runc \
        --cgroup-manager cgroupfs --events-backend file "$@"; }
    P run --rm --name textcls-check --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 --no-healthcheck \
        --network host --read-only --read-only-tmpfs=false --cap-drop ALL "$TAG" --no-auth --port "$PORT" \
        >"$TMP/run" 2>&1 &
    for _ in $(seq 500); do curl -fs "http://127.0.0.1:$PORT/readyz" >/dev/null && break; sleep .02; done
    python3 deploy/smoke.py "http://127.0.0.1:$PORT" || { cat "$TMP/run"; exit 1; }
    P exec textcls-check sh -c 'echo "uid $(id -u)"; for f in / /opt/textcls /tmp /models; do touch $f/x 2>/dev/null && echo "$f is writable" && exit 1; done; true'
    P stop -t 15 textcls-check >/dev/null
    echo "read-only: ok"
fi
echo "image: ok"
