"""Local S3 server with one empty bucket."""

from collections.abc import Generator
from contextlib import contextmanager
from urllib.request import Request, urlopen

import pytest
from moto.server import ThreadedMotoServer


@contextmanager
def s3_bucket(monkeypatch: pytest.MonkeyPatch, name: str) -> Generator[None]:
    """Serve an empty bucket with this name. The environment names the server and its credentials."""
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    for variable, value in {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT": endpoint,
        "AWS_ALLOW_HTTP": "true",
    }.items():
        monkeypatch.setenv(variable, value)
    try:
        with urlopen(Request(f"{endpoint}/{name}", method="PUT")):
            yield
    finally:
        server.stop()
