# The service: base install and `serve`, no compiler, no PyTorch. Models are mounted, or copied in by an image on top:
#   docker run -p 8000:8000 -e TEXTCLS_API_KEYS -v "$PWD/models:/models:ro" --read-only textcls
# A tag can be moved and a digest cannot. To build on what was built on before:
#   docker build --build-arg BASE=docker.io/library/python:3.11-slim@sha256:... -t textcls .
# With what `--tracing` needs: --build-arg LOCK=serve-otel; with what reaches s3:// and other stores: LOCK=serve-store
ARG BASE=docker.io/library/python:3.11-slim

FROM ${BASE} AS build
ARG LOCK=serve
WORKDIR /src
COPY pyproject.toml README.md LICENSE CHANGELOG.md ./
COPY deploy/locks deploy/locks
COPY scripts/install_service.sh scripts/
COPY textcls textcls
COPY training training
COPY kernels kernels
# uvloop's debug symbols are most of its size.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends binutils \
    && rm -rf /var/lib/apt/lists/* \
    && sh scripts/install_service.sh /opt/textcls "${LOCK}" \
    && find /opt/textcls -path '*/uvloop/*.so' -exec strip --strip-unneeded {} + \
    && /opt/textcls/bin/python -m compileall -q /opt/textcls/lib

FROM ${BASE}
COPY --from=build /opt/textcls /opt/textcls
ENV PATH=/opt/textcls/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    TEXTCLS_SERVE_HOST=0.0.0.0 \
    TEXTCLS_SERVE_MODELS=/models \
    TEXTCLS_SERVE_LOG_LEVEL=info \
    TEXTCLS_SERVE_PROBE_PORT=8001 \
    TEXTCLS_SERVE_DRAIN_SECONDS=5
USER 10001:10001
# 8001 answers probes and metrics, without keys: publish 8000 alone.
EXPOSE 8000 8001
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s \
    CMD ["/opt/textcls/bin/python", "-c", "import os, urllib.request; port = os.environ['TEXTCLS_SERVE_PROBE_PORT']; urllib.request.urlopen(f'http://127.0.0.1:{port}/readyz', timeout=2)"]
ENTRYPOINT ["textcls", "serve"]
CMD []
