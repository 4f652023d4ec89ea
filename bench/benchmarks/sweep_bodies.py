"""Request bodies: read, rewritten by splices, beside json.loads and json.dumps of the same body in the same process."""

import json
import random
import tracemalloc

from cg.sweep.body.marker import written_token
from cg.sweep.body.splice import ask_body, replace_text, splice
from cg.sweep.body.transcript import read

N_RESULTS = 100
WORDS = [
    "def",
    "return",
    "self.",
    "payload",
    "cache",
    "\n    ",
    '"key"',
    "index",
    "\t",
    "path/to/file.py:",
    "=",
    "(",
    ")",
]


def output(rng: random.Random, size: int, style: str) -> str:
    """One tool output: `code` has an escape every 20 bytes in JSON, `prose` none, `han` no ASCII."""
    if style == "han":
        return "".join(chr(rng.randrange(0x4E00, 0x9FA5)) for _ in range(size // 3))
    words = WORDS if style == "code" else ["cache", "prefix", "request", "of", "the"]
    parts: list[str] = []
    length = 0
    while length < size:
        parts.append(rng.choice(words))
        length += len(parts[-1]) + 1
    return " ".join(parts)


def request(size: int, style: str) -> bytes:
    """A conversation of 100 calls and results, `size` bytes of outputs, as Claude Code spells it."""
    rng = random.Random(size)
    messages: list[dict] = [{"role": "user", "content": "Read every module."}]
    for i in range(N_RESULTS):
        call = {"type": "tool_use", "id": f"toolu_{i:04}", "name": "Read", "input": {"file_path": f"/repo/{i}.py"}}
        text = output(rng, size // N_RESULTS, style)
        messages.append({"role": "assistant", "content": [{"type": "text", "text": "Reading."}, call]})
        messages.append(
            {"role": "user", "content": [{"tool_use_id": call["id"], "type": "tool_result", "content": text}]}
        )
    messages[-1]["content"][0]["cache_control"] = {"type": "ephemeral"}
    tools = [{"name": "Read", "input_schema": {"type": "object"}}]
    body = {"model": "claude-sonnet-5", "messages": messages, "system": "s", "tools": tools, "max_tokens": 32_000}
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


class Body:
    """One request of 1 MB; `peer` is what a rewriter without spans does."""

    params, param_names = (["code", "prose", "han"], ["read", "replay_100", "ask", "peer"]), ["style", "call"]

    def setup(self, style, call):
        self.body = body = request(1_000_000, style)
        tokens = [written_token(text.content) for text in read(body).tool_texts]

        def replay():
            transcript = read(body)
            return splice(
                body, [replace_text(t, token) for t, token in zip(transcript.tool_texts, tokens, strict=True)]
            )

        self.call = {
            "read": lambda: read(body),
            "replay_100": replay,
            "ask": lambda: ask_body(body, "Which of these are spent?"),
            "peer": lambda: json.dumps(json.loads(body), ensure_ascii=False).encode(),
        }[call]

    def time_call(self, style, call):
        self.call()


class Memory:
    """Bytes allocated at the peak, over the body's own size; the body itself is not counted."""

    params, param_names = [["replay_1", "ask", "peer"]], ["call"]

    def setup(self, call):
        self.bench = Body()
        self.bench.setup("code", "peer" if call == "peer" else "ask")
        if call == "replay_1":
            body = self.bench.body

            def replay():
                transcript = read(body)
                return splice(body, [replace_text(transcript.tool_texts[50], b'"gone"')])

            self.bench.call = replay

    def track_peak(self, call):
        tracemalloc.start()
        try:
            self.bench.call()
            return tracemalloc.get_traced_memory()[1] / len(self.bench.body)
        finally:
            tracemalloc.stop()


Memory.track_peak.unit = "bodies"
