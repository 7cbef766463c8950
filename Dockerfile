# Image of the MCP server. docs/clients.md describes how clients start it.
#   docker build -t palaver-archive .
FROM python:3.13-slim AS build
COPY . /source
RUN python -m venv /palaver && /palaver/bin/pip install --no-cache-dir -c /source/constraints.txt /source

FROM python:3.13-slim
COPY --from=build /palaver /palaver
# The archive is mounted at /data. HOME is writable for any user of the host.
ENV PALAVER_HOME=/data HOME=/tmp PATH=/palaver/bin:$PATH
VOLUME /data
ENTRYPOINT ["palaver"]
CMD ["mcp"]
