"""A model that follows a script, on loopback, for agent hosts: OpenAI's chat and responses, Gemini.

How many tool results a conversation holds tells which step is next. Bounded in requests; what was
asked is kept, so that tests can look at what a model would have been sent.
"""

import json
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

MODEL = "scripted"
DONE = "The script has ended."
_MOST_REQUESTS = 60


class Step(NamedTuple):
    """A call of the first tool on offer whose name matches; or of the name as it is, where a host
    has tools that it does not offer until they are searched for."""

    tool: str
    arguments: dict[str, Any]


class Call(NamedTuple):
    """What the model wants: `space` is what the responses dialect calls a tool's namespace."""

    name: str
    arguments: dict[str, Any]
    space: str = ""


class ScriptedModel:
    """The server's state: the script, and what was asked."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = steps
        self._lock = threading.Lock()
        self.port = 0
        self.used = 10
        """How many tokens a request is said to have had."""
        self.bodies: list[dict[str, Any]] = []
        self.results: list[str] = []
        """The tool results of the longest conversation so far, as text."""
        self.offered: list[str] = []
        self.trouble: list[str] = []

    @property
    def address(self) -> str:
        """Of the server, without a path."""
        return f"http://127.0.0.1:{self.port}"

    def asked(self, body: dict[str, Any]) -> int:
        """Keep a request: its number, from 1."""
        with self._lock:
            self.bodies.append(body)
            return len(self.bodies)

    def next(self, offered: list[tuple[str, str]], results: list[str]) -> Call | None:
        """The next call; None for an answer in words."""
        with self._lock:
            if len(results) > len(self.results):
                self.results = results
            if offered:
                self.offered = [name for _, name in offered]
            if not offered or len(results) >= len(self.steps):
                return None
            if len(self.bodies) > _MOST_REQUESTS:
                self.trouble.append("too many requests")
                return None
            step = self.steps[len(results)]
            for space, name in offered:
                if re.search(step.tool, f"{space}{name}"):
                    return Call(name, step.arguments, space)
            self.trouble.append(f"{step.tool} is not among {self.offered}")
            return None


@contextmanager
def scripted_model(
    steps: Sequence[Step], kind: type[ScriptedModel] = ScriptedModel
) -> Iterator[ScriptedModel]:
    """Serve on a free port until the block ends."""
    model = kind(steps)

    class Handler(_Handler):
        """The handler of this model."""

    Handler.model = model
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        model.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield model
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    model: ScriptedModel
    timeout = 30

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        listed = {"id": MODEL, "object": "model", "created": 1, "owned_by": "tests"}
        self._json({"object": "list", "data": [listed], "models": []})

    def do_POST(self) -> None:
        body = json.loads(self._read() or b"{}")
        path = self.path.partition("?")[0]
        number = self.model.asked(body)
        try:
            if path.endswith("/chat/completions"):
                self._chat(body, number)
            elif path.endswith("/responses"):
                self._responses(body, number)
            elif "enerateContent" in path:
                self._gemini(body, stream="stream" in path)
            elif path.endswith(":countTokens"):
                self._json({"totalTokens": 100})
            else:
                self._json({"error": {"message": "no such path"}}, 404)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the host has gone

    def _read(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline().partition(b";")[0] or b"0", 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _json(self, value: Any, status: int = 200) -> None:
        self._send(json.dumps(value).encode(), "application/json", status)

    def _events(self, events: list[Any], *, named: bool = False) -> None:
        lines = []
        for event in events:
            if named:
                lines.append(f"event: {event['type']}\n")
            data = event if isinstance(event, str) else json.dumps(event)
            lines.append(f"data: {data}\n\n")
        self._send("".join(lines).encode(), "text/event-stream", 200)

    def _send(self, data: bytes, kind: str, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    # The dialects

    def _chat(self, body: dict[str, Any], number: int) -> None:
        offered = [("", tool["function"]["name"]) for tool in body.get("tools") or ()]
        results = [_text(m.get("content")) for m in body["messages"] if m.get("role") == "tool"]
        call = self.model.next(offered, results)
        message: dict[str, Any] = {"role": "assistant", "content": DONE}
        if call is not None:
            function = {"name": call.name, "arguments": json.dumps(call.arguments)}
            calls = [{"id": f"call_{number}", "type": "function", "function": function}]
            message = {"role": "assistant", "content": None, "tool_calls": calls}
        reason = "stop" if call is None else "tool_calls"
        used = self.model.used
        usage = {"prompt_tokens": used, "completion_tokens": 5, "total_tokens": used + 5}
        about = {"id": f"chat_{number}", "created": 1, "model": MODEL}
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": reason}
            whole = {**about, "object": "chat.completion", "choices": [choice], "usage": usage}
            self._json(whole)
            return
        about["object"] = "chat.completion.chunk"
        for each in message.get("tool_calls", ()):
            each["index"] = 0
        choices: list[list[dict[str, Any]]] = [
            [{"index": 0, "delta": message, "finish_reason": None}],
            [{"index": 0, "delta": {}, "finish_reason": reason}],
            [],
        ]
        chunks: list[Any] = [{**about, "choices": each} for each in choices]
        chunks[-1]["usage"] = usage
        self._events([*chunks, "[DONE]"])

    def _responses(self, body: dict[str, Any], number: int) -> None:
        offered = []
        for tool in body.get("tools") or ():
            if tool["type"] == "namespace":
                offered += [(tool["name"], each["name"]) for each in tool["tools"]]
            elif "name" in tool:
                offered.append(("", tool["name"]))
        items = body["input"] if isinstance(body["input"], list) else []
        outputs = [item for item in items if item.get("type") == "function_call_output"]
        call = self.model.next(offered, [_text(item["output"]) for item in outputs])
        item: dict[str, Any]
        if call is None:
            content = [{"type": "output_text", "text": DONE, "annotations": []}]
            item = {"type": "message", "id": f"msg_{number}", "role": "assistant"}
            item |= {"status": "completed", "content": content}
        else:
            item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}"}
            item |= {"name": call.name, "arguments": json.dumps(call.arguments)}
            item |= {"status": "completed"} | ({"namespace": call.space} if call.space else {})
        usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
        whole = {"id": f"resp_{number}", "object": "response", "created_at": 1, "model": MODEL}
        whole |= {"status": "completed", "output": [item], "usage": usage}
        if not body.get("stream"):
            self._json(whole)
            return
        begun = {**whole, "status": "in_progress", "output": []}
        events = [
            {"type": "response.created", "response": begun},
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": whole},
        ]
        self._events(events, named=True)

    def _gemini(self, body: dict[str, Any], *, stream: bool) -> None:
        offered = [
            ("", each["name"])
            for tool in body.get("tools") or ()
            for each in tool.get("functionDeclarations", ())
        ]
        parts = [part for content in body.get("contents", ()) for part in content.get("parts", ())]
        results = [
            _text(part["functionResponse"]["response"])
            for part in parts
            if "functionResponse" in part
        ]
        call = self.model.next(offered, results)
        said: dict[str, Any] = {"text": DONE}
        if call is not None:
            said = {"functionCall": {"name": call.name, "args": call.arguments}}
        elif (body.get("generationConfig") or {}).get("responseMimeType") == "application/json":
            said = {"text": "{}"}
        content = {"role": "model", "parts": [said]}
        usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
        answer = {
            "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
            "usageMetadata": usage,
            "modelVersion": MODEL,
        }
        if stream:
            self._events([answer])
        else:
            self._json(answer)


def _text(value: Any) -> str:
    """All that is text in a tool result, whatever its shape."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(map(_text, value))
    if isinstance(value, dict):
        return "\n".join(_text(each) for name, each in value.items() if name != "type")
    return ""
