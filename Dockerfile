# The service: base install and `serve`, no compiler, no PyTorch. Mount a model at /models/model.onnx:
#   docker run -p 8000:8000 -v "$PWD/tickets.onnx:/models/model.onnx:ro" textcls
FROM docker.io/library/python:3.11-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE CHANGELOG.md ./
COPY textcls textcls
COPY training training
COPY kernels kernels
RUN python3 -m venv /opt/textcls \
    && /opt/textcls/bin/python -m pip install --no-cache-dir --constraint constraints.txt '.[serve]' \
    && /opt/textcls/bin/python -m pip uninstall --yes --quiet pip

FROM docker.io/library/python:3.11-slim
COPY --from=build /opt/textcls /opt/textcls
ENV PATH=/opt/textcls/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s \
    CMD ["/opt/textcls/bin/python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/readyz', timeout=2)"]
ENTRYPOINT ["textcls", "serve"]
CMD ["/models/model.onnx", "--host", "0.0.0.0"]
