# The service: base install and `serve`, no compiler, no PyTorch. Models are mounted, or copied in by an image on top:
#   docker run -p 8000:8000 -e TEXTCLS_API_KEYS -v "$PWD/models:/models:ro" --read-only textcls
FROM docker.io/library/python:3.11-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE CHANGELOG.md ./
COPY textcls textcls
COPY training training
COPY kernels kernels
# Removed again: protobuf and flatbuffers, which ONNX Runtime declares but only its tools import; pip and setuptools; and
# uvloop's debug symbols, most of its size. scripts/check_image.sh shows that it runs without.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends binutils \
    && rm -rf /var/lib/apt/lists/* \
    && python3 -m venv /opt/textcls \
    && /opt/textcls/bin/python -m pip install --no-cache-dir --no-compile --constraint constraints.txt '.[serve]' \
    && /opt/textcls/bin/python -m pip uninstall --yes --quiet protobuf flatbuffers pip setuptools \
    && find /opt/textcls -path '*/uvloop/*.so' -exec strip --strip-unneeded {} + \
    && /opt/textcls/bin/python -m compileall -q /opt/textcls/lib \
    && /opt/textcls/bin/textcls serve --help > /dev/null

FROM docker.io/library/python:3.11-slim
COPY --from=build /opt/textcls /opt/textcls
ENV PATH=/opt/textcls/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    TEXTCLS_SERVE_HOST=0.0.0.0 \
    TEXTCLS_SERVE_MODELS=/models \
    TEXTCLS_SERVE_LOG_LEVEL=info \
    TEXTCLS_SERVE_DRAIN_SECONDS=5
USER 10001:10001
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s \
    CMD ["/opt/textcls/bin/python", "-c", "import os, urllib.request; port = os.environ.get('TEXTCLS_SERVE_PORT', '8000'); urllib.request.urlopen(f'http://127.0.0.1:{port}/readyz', timeout=2)"]
ENTRYPOINT ["textcls", "serve"]
CMD []
