# The service: base install and `serve`, no compiler, no PyTorch. Models are mounted, or copied in by an image on top:
#   docker run -p 8000:8000 -e TEXTCLS_API_KEYS -v "$PWD/models:/models:ro" --read-only textcls
FROM docker.io/library/python:3.11-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE CHANGELOG.md ./
COPY textcls textcls
COPY training training
COPY kernels kernels
# What ONNX Runtime declares and only its tools import, and what this machine's Python has anyway, stay behind; so do
# pip and the symbols of uvloop, which are two thirds of it. scripts/check_image.sh shows that it runs without.
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
    CMD ["/opt/textcls/bin/python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/readyz', timeout=2)"]
ENTRYPOINT ["textcls", "serve"]
CMD []
