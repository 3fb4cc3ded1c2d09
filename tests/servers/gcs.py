"""A Google Cloud Storage server on loopback (gcp-storage-emulator), with one bucket, and the environment that leads to it."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

BUCKET = "pool"


@contextmanager
def gcs_server() -> Iterator[None]:
    """Run a server in a thread; for the block, the environment lets clients find it."""
    from gcp_storage_emulator.server import create_server
    from gcsfs import GCSFileSystem

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Without the second one, gcsfs asks Google for the kind of each bucket.
    given = {"STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{port}", "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false"}
    GCSFileSystem.clear_instance_cache()
    server = create_server("127.0.0.1", port, in_memory=True, default_bucket=BUCKET)
    with patch.dict("os.environ", given), server:
        yield
    GCSFileSystem.clear_instance_cache()
