#!/bin/sh
# Checks what is deployed: manifests against the schemas of Kubernetes, the Dockerfile by its linter, what the image
# installs against known vulnerabilities; where they are at hand, Prometheus' settings and alerts by its promtool, and the
# services by docker-compose, which needs no daemon for it.
# tests/test_deploy.py holds manifests, dashboard and alerts against the code, and tries fetched-models.yaml, which is a
# part of an object, on top of textcls.yaml.
#   scripts/check_deploy.sh FOLDER_OF_PROGRAMS
set -eu
"$1/hadolint" Dockerfile
for manifest in deploy/kubernetes/textcls.yaml deploy/kubernetes/autoscaling.yaml; do
    "$1/kubernetes-validate" --quiet --strict "$manifest"
done
if command -v promtool > /dev/null; then
    # Not that of Kubernetes: Debian's promtool does not know how pods are found there.
    promtool check config --syntax-only deploy/prometheus.yaml
    promtool test rules deploy/alerts_test.yaml
else
    echo "deploy: no promtool on the PATH (Debian: prometheus); the alerts were not tried" >&2
fi
if command -v docker-compose > /dev/null; then
    docker-compose --file deploy/compose.yaml config --quiet
else
    echo "deploy: no docker-compose on the PATH; compose.yaml was not tried" >&2
fi
"$1/python" scripts/scan.py "$1"
echo "deploy: ok"
