#!/bin/sh
# Checks what is deployed: manifests against the schemas of Kubernetes, the Dockerfile by its linter. tests/test_deploy.py
# holds manifests, dashboard and alerts against the code.
#   scripts/check_deploy.sh FOLDER_OF_PROGRAMS
set -eu
"$1/hadolint" Dockerfile
"$1/kubernetes-validate" --quiet --strict deploy/kubernetes/textcls.yaml
echo "deploy: ok"
