# One image for every role: web (default), worker, beat, manage. Built and run without any secret inside. `make image`
# builds and examines it. A release names its base by digest and is refused without one:
# --build-arg RELEASE=1 --build-arg PYTHON_IMAGE=python:3.11-slim@sha256:...
ARG PYTHON_IMAGE=python:3.11-slim

FROM ${PYTHON_IMAGE} AS base
ARG PYTHON_IMAGE
ARG RELEASE=
RUN case "$RELEASE,$PYTHON_IMAGE" in ,*|*@sha256:????????????????????????????????????????????????????????????????) ;; \
    *) echo "A release needs PYTHON_IMAGE by digest (name@sha256:...), not $PYTHON_IMAGE." >&2; exit 1 ;; esac

# The base without package managers, pip and what only they need.
FROM base AS system
COPY scripts/slim_system.sh /tmp/
RUN sh /tmp/slim_system.sh /system

FROM base AS application
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
# Optional parts: --build-arg EXTRAS=aws adds the library of AWS KMS.
ARG EXTRAS=""
COPY requirements.lock requirements-aws.lock /tmp/
RUN python -m venv --without-pip /opt/venv \
    && for lock in requirements ${EXTRAS:+requirements-${EXTRAS}}; do \
        python -m pip --python /opt/venv/bin/python install --no-compile --no-deps --require-hashes \
            --only-binary :all: -r "/tmp/$lock.lock" || exit 1; \
    done
WORKDIR /app
COPY . .
RUN /opt/venv/bin/python -B scripts/collect_static.py && sh scripts/slim_application.sh /opt/venv /app

FROM scratch
COPY --from=system /system /
COPY --from=application /opt/venv /opt/venv
COPY --from=application /app /app
# A folder of the user's own: without its owner named here, engines differ.
COPY --from=system --chown=10001:10001 /system/data /data
COPY --chmod=0755 gateway/container/manage.sh /usr/local/bin/manage
WORKDIR /app
ENV PATH=/opt/venv/bin:/usr/local/bin:/usr/bin:/bin \
    LANG=C.UTF-8 \
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
ARG PYTHON_IMAGE
ENV GATEWAY_COMMIT=${REVISION}
LABEL org.opencontainers.image.title=gateway \
    org.opencontainers.image.version=${VERSION} \
    org.opencontainers.image.revision=${REVISION} \
    org.opencontainers.image.base.name=${PYTHON_IMAGE} \
    gateway.schema=${SCHEMA}
ENTRYPOINT ["python", "-m", "gateway.container.entrypoint"]
CMD ["web"]
