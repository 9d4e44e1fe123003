"""One keep-alive connection to the subscriber's webhook."""

from __future__ import annotations

import asyncio

from sendonce.sandbox.settings import WebhookTarget

SNS_PATIENCE = 15.0  # seconds that SNS waits for an answer
_MAX_ANSWER = 1 << 20


class WebhookConnection:
    """Posts, and tells the status. Any trouble is an OSError, and the next post connects anew."""

    def __init__(self) -> None:
        self._target: WebhookTarget | None = None
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def post(self, target: WebhookTarget, headers: list[tuple[str, str]], body: bytes) -> int:
        if target != self._target:
            await self.close()
            self._target = target
        reused = self._writer is not None
        try:
            return await self._exchange(target, headers, body)
        except OSError as exc:
            await self.close()
            # A receiver may close an idle connection at any moment: that says nothing about now.
            if not reused or isinstance(exc, TimeoutError):
                raise
        return await self.post(target, headers, body)

    async def _exchange(self, target: WebhookTarget, headers: list[tuple[str, str]], body: bytes) -> int:
        try:
            async with asyncio.timeout(SNS_PATIENCE):
                if self._writer is None:
                    self._reader, self._writer = await asyncio.open_connection(target.host, target.port)
                self._writer.write(_request_bytes(target, headers, body))
                await self._writer.drain()
                return await self._read_answer()
        except (EOFError, ValueError, asyncio.LimitOverrunError) as exc:
            raise ConnectionError(f"The answer of {target.host}:{target.port} is not whole HTTP.") from exc

    async def _read_answer(self) -> int:
        assert self._reader is not None
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        status = int(head[0].split(" ")[1])
        fields = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])
        }
        if fields.get("transfer-encoding", "").lower() == "chunked":
            await self._skip_chunks()
        else:
            await self._skip(int(fields.get("content-length", "0")))
        if fields.get("connection", "").lower() == "close":
            await self.close()
        return status

    async def _skip(self, size: int) -> None:
        assert self._reader is not None
        if size > _MAX_ANSWER:
            raise ValueError(f"an answer of {size} bytes")
        await self._reader.readexactly(size)

    async def _skip_chunks(self) -> None:
        assert self._reader is not None
        while size := int((await self._reader.readline()).split(b";")[0], 16):
            await self._skip(size + 2)
        while (await self._reader.readline()).strip():
            pass

    async def close(self) -> None:
        writer, self._writer, self._reader = self._writer, None, None
        if writer is not None:
            writer.close()
            try:
                await writer.wait_closed()
            except OSError:
                return


def _request_bytes(target: WebhookTarget, headers: list[tuple[str, str]], body: bytes) -> bytes:
    host = f"[{target.host}]" if ":" in target.host else target.host
    lines = [f"POST {target.path} HTTP/1.1", f"Host: {host}:{target.port}", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body
