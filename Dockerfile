# One image for every role: web (default), worker, beat, manage. Built and run without any secret inside.
# A release names its base by digest: --build-arg PYTHON_IMAGE=python:3.11-slim@sha256:...
ARG PYTHON_IMAGE=python:3.11-slim
FROM ${PYTHON_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/venv
# Optional parts: --build-arg EXTRAS=aws adds the library of AWS KMS.
ARG EXTRAS=""
COPY requirements.lock requirements-aws.lock /tmp/
RUN for lock in requirements ${EXTRAS:+requirements-${EXTRAS}}; do \
        /opt/venv/bin/pip install --require-hashes --only-binary :all: -r "/tmp/$lock.lock" || exit 1; \
    done
WORKDIR /app
COPY . .
RUN /opt/venv/bin/python scripts/collect_static.py \
    && /opt/venv/bin/python -m compileall -q . /opt/venv/lib \
    && rm -r scripts

FROM ${PYTHON_IMAGE}
RUN groupadd --system --gid 10001 gateway \
    && useradd --system --uid 10001 --gid gateway --no-create-home --home-dir /nonexistent gateway \
    && install -d -m 0700 -o gateway -g gateway /data /data/metrics
COPY --from=build /opt/venv /opt/venv
COPY --from=build /app /app
COPY --chmod=0755 gateway/container/manage.sh /usr/local/bin/manage
WORKDIR /app
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    DJANGO_SETTINGS_MODULE=gateway.settings \
    GATEWAY_MODE=production \
    VAR=/data
USER 10001:10001
EXPOSE 8000
# Roles without a port are checked in another way or not at all: see compose.yaml.
HEALTHCHECK --interval=15s --timeout=6s --start-period=20s --retries=3 \
    CMD ["python", "-m", "gateway.container.entrypoint", "health"]
STOPSIGNAL SIGTERM
# docker build $(python -m gateway.lib.build_info) . gives all three.
ARG VERSION=unknown
ARG REVISION=unknown
ARG SCHEMA=unknown
ENV GATEWAY_COMMIT=${REVISION}
LABEL org.opencontainers.image.title=gateway \
    org.opencontainers.image.version=${VERSION} \
    org.opencontainers.image.revision=${REVISION} \
    gateway.schema=${SCHEMA}
ENTRYPOINT ["python", "-m", "gateway.container.entrypoint"]
CMD ["web"]
