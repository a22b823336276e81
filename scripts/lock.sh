#!/bin/sh
# Writes deploy/locks: what the image installs, each file by its hashes. Versions are those of constraints.txt.
#   scripts/lock.sh FOLDER_OF_PROGRAMS        (with pip-compile, of Python 3.11 as in the image; make lock)
set -eu
export CUSTOM_COMPILE_COMMAND="make lock"
lock() {
    to=deploy/locks/$1.txt; shift
    # Hashes are those of every file of a version, so that other processors are served, too.
    "$programs/pip-compile" --quiet --strip-extras --generate-hashes --allow-unsafe --annotation-style line \
        --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options \
        --constraint constraints.txt --output-file "$to" "$@" pyproject.toml
    echo "$to"
}
programs=$1
lock serve --extra serve
lock serve-otel --extra serve --extra otel
lock serve-store --extra serve --extra parquet
lock build --build-deps-for wheel --only-build-deps
