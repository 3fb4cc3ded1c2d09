"""An S3 server on loopback (moto's), with one bucket, and the environment that leads to it."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pairwright.datasets.tar_index import _open_stored

SECRET = "a-secret-that-nobody-may-read"  # noqa: S105 - that of a server in this process
BUCKET = "pool"


@dataclass
class Traffic:
    """What a server has sent: bytes of the answers to GET requests."""

    sent: int = 0

    def counted(self, app: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
        """Return a WSGI application whose answers are counted."""

        def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
            for block in app(environ, start):
                self.sent += len(block) if environ["REQUEST_METHOD"] == "GET" else 0
                yield block

        return answer


@contextmanager
def s3_server() -> Iterator[Traffic]:
    """Run a server in a thread; for the block, the environment lets clients find it and lets them in."""
    import boto3
    from moto.server import ThreadedMotoServer
    from s3fs import S3FileSystem

    S3FileSystem.clear_instance_cache()  # clients of an earlier server in this process
    _open_stored.cache_clear()
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    traffic = Traffic()
    server._server.app = traffic.counted(server._server.app)
    given = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "an-id-that-nobody-may-read",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        boto3.client("s3").create_bucket(Bucket=BUCKET)
        yield traffic
    finally:
        server.stop()
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})
