#!/bin/sh
# Writes what the image holds of Python packages, with versions, licences and what needs what, as CycloneDX.
#   scripts/sbom.sh FOLDER_OF_PROGRAMS FILE [serve | serve-otel]       (with cyclonedx-py; make sbom)
# What the base image holds beside them, a scanner of images lists.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sh scripts/install_service.sh "$work/service" "${3:-serve}"
mkdir -p "$(dirname "$2")"
"$1/cyclonedx-py" environment --output-reproducible --validate --output-file "$2" "$work/service/bin/python"
echo "$2"
