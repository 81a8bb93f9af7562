FROM python:3.11-slim-bookworm AS build
WORKDIR /src
COPY requirements/ requirements/
# --without-pip, as the finished environment is never added to
RUN python -m venv --without-pip /opt/lora-exporter \
    && pip install --no-cache-dir --require-hashes -r requirements/build.txt \
    && pip --python /opt/lora-exporter/bin/python install --no-cache-dir --only-binary :all: \
        --require-hashes -r requirements/runtime.txt
COPY pyproject.toml README.md LICENSE ./
COPY exporter/ exporter/
RUN pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /dist . \
    && pip --python /opt/lora-exporter/bin/python install --no-cache-dir --no-deps /dist/*.whl

FROM python:3.11-slim-bookworm
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="lora-capacity-exporter" \
    org.opencontainers.image.description="Prometheus exporter of the LoRA adapter slots of LLM engines" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.revision="${REVISION}"
# pip compiled the modules above, and the root filesystem may be read-only here
ENV PATH=/opt/lora-exporter/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
COPY --from=build /opt/lora-exporter /opt/lora-exporter
# a number, so that Kubernetes can verify runAsNonRoot
USER 65532:65532
WORKDIR /
EXPOSE 10107
STOPSIGNAL SIGTERM
# http.client, as urllib would ask a proxy that the environment names
HEALTHCHECK --interval=15s --timeout=5s --start-period=10s CMD ["python", "-c", "import http.client, os, sys; p = os.environ.get('LORA_EXPORTER_WEB__LISTEN_ADDRESS', ':10107').rpartition(':')[2]; c = http.client.HTTPConnection('127.0.0.1', int(p), timeout=3); c.request('GET', '/-/healthy'); sys.exit(c.getresponse().status != 200)"]
ENTRYPOINT ["lora-exporter"]
CMD ["serve"]
