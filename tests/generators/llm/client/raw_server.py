"""A server that answers bytes of one's own choosing, for what the test server is too well-bred to say."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class RawServer:
    """Where it listens, and the heads of the requests that came."""

    root: str
    heads: list[str] = field(default_factory=list)

    def header(self, name: str) -> str | None:
        """Return a header of the last request."""
        lines = self.heads[-1].split("\r\n")[1:]
        found = [line.partition(":")[2].strip() for line in lines if line.lower().startswith(name.lower() + ":")]
        return found[0] if found else None


def http(status: str, body: bytes, *headers: str) -> bytes:
    """Return an answer."""
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@asynccontextmanager
async def answering(answer: bytes, *, forever: bytes = b"") -> AsyncIterator[RawServer]:
    """Answer each request with ``answer``, then with ``forever`` again and again until the client has gone."""
    server = RawServer("")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            server.heads.append((await reader.readuntil(b"\r\n\r\n")).decode("latin-1"))
            await reader.readexactly(int(server.header("content-length") or 0))
            writer.write(answer)
            while forever:
                writer.write(forever)
                await writer.drain()
            await writer.drain()
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    server.root = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    async with listener:
        yield server
