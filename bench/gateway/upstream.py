"""An upstream that costs little: answers each POST with a short message, or with a stream of events if asked for one.

The query says what: `events=N` and `gap_ms=M`. Prints its port.
"""

import asyncio
import json
from urllib.parse import parse_qs

USAGE = {"input_tokens": 10, "cache_read_input_tokens": 300_000, "cache_creation_input_tokens": 50, "output_tokens": 5}
MESSAGE = json.dumps(
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5",
        "content": [{"type": "text", "text": "Done."}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": USAGE,
    }
).encode()
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(MESSAGE)
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def event(name: str, **data: object) -> bytes:
    text = f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n".encode()
    return b"%x\r\n%s\r\n" % (len(text), text)


def events(count: int) -> list[bytes]:
    """A whole stream of the API's kind with `count` deltas, one chunk an event."""
    start = {**json.loads(MESSAGE), "content": [], "stop_reason": None}
    block = {"type": "text", "text": ""}
    deltas = [
        event("content_block_delta", index=0, delta={"type": "text_delta", "text": f"word {n} "}) for n in range(count)
    ]
    return [
        event("message_start", message=start),
        event("content_block_start", index=0, content_block=block),
        *deltas,
        event("content_block_stop", index=0),
        event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": count}),
        event("message_stop"),
    ]


class Upstream(asyncio.Protocol):
    """One connection; requests are told apart by their length alone."""

    def connection_made(self, transport) -> None:
        self.transport = transport
        self.buffer = bytearray()
        self.left = 0
        self.query: dict[str, list[str]] = {}
        self.in_body = False

    def data_received(self, data: bytes) -> None:
        if not self.in_body:
            self.buffer += data
            end = self.buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            head = bytes(self.buffer[:end]).lower()
            length = head.partition(b"content-length: ")[2].partition(b"\r\n")[0]
            self.query = parse_qs(head.split(b" ")[1].partition(b"?")[2].decode())
            self.left = int(length or 0) - (len(self.buffer) - end - 4)
            self.buffer.clear()
            self.in_body = True
        else:
            self.left -= len(data)
        if self.left <= 0:
            self.in_body = False
            self.answer()

    def answer(self) -> None:
        if "events" not in self.query:
            self.transport.write(HEAD + MESSAGE)
            return
        count, gap_s = int(self.query["events"][0]), float(self.query.get("gap_ms", ["0"])[0]) / 1000
        asyncio.ensure_future(self.stream(events(count), gap_s))

    async def stream(self, pieces: list[bytes], gap_s: float) -> None:
        self.transport.write(STREAM_HEAD)
        for piece in pieces:
            if self.transport.is_closing():
                return
            self.transport.write(piece)
            if gap_s:
                await asyncio.sleep(gap_s)
        self.transport.write(b"0\r\n\r\n")


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Upstream, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
