# syntax=docker/dockerfile:1

# The digest is of python:3.12-slim. A newer one: docker buildx imagetools inspect python:3.12-slim
FROM python:3.12-slim@sha256:78387bc3881b8273120a12ebe6c1ab22b018ccc2c9adf565ae1ac9b536e184ea AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /build
COPY requirements/build.txt requirements/run.txt requirements/
# Only wheels whose hashes are in the locks. The tools that build ours stay behind in this stage.
RUN python -m venv /opt/tools \
 && /opt/tools/bin/pip install --require-hashes --only-binary=:all: -r requirements/build.txt \
 && python -m venv --without-pip /opt/sendonce \
 && /opt/tools/bin/pip --python /opt/sendonce/bin/python install --require-hashes --only-binary=:all: \
      -r requirements/run.txt
COPY pyproject.toml README.md LICENSE ./
COPY src/ src/
RUN /opt/tools/bin/pip wheel --no-deps --no-build-isolation --wheel-dir dist . \
 && /opt/tools/bin/pip --python /opt/sendonce/bin/python install --no-deps --no-index dist/*.whl

FROM python:3.12-slim@sha256:78387bc3881b8273120a12ebe6c1ab22b018ccc2c9adf565ae1ac9b536e184ea
# The user's id is a number, so that Kubernetes can see that it is not root.
RUN groupadd --gid 10001 sendonce \
 && useradd --uid 10001 --gid 10001 --home-dir /data --no-create-home --shell /usr/sbin/nologin sendonce \
 && install --directory --owner=10001 --group=10001 --mode=0700 /data /state
COPY --from=build /opt/sendonce /opt/sendonce
ENV PATH=/opt/sendonce/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HOST=0.0.0.0 \
    PORT=3000 \
    DATABASE_URL=sqlite:////data/sendonce.db \
    STATE_DIR=/state \
    LOG_FORMAT=json
USER 10001:10001
# Everything that is ever written lies in these two: the rest of the file system may be read-only. They are
# two, so that a snapshot of one does not take the other back with it: they are each other's witnesses.
WORKDIR /data
VOLUME ["/data", "/state"]
EXPOSE 3000
# For `serve`. Other commands have no port to look at: docker-compose.yml turns it off for them.
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 \
  CMD ["python", "-c", "import http.client as h, os; c = h.HTTPConnection('127.0.0.1', int(os.environ['PORT']), timeout=4); c.request('GET', '/healthz'); raise SystemExit(c.getresponse().status != 200)"]
ENTRYPOINT ["sendonce"]
CMD ["serve"]
