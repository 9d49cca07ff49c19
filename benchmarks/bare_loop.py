"""The practical floor: read a frame, json, open the file, write. No policy, no checks.

Usage: bare_loop.py [orjson]
"""

import json
import sys
from typing import Any

loads: Any = json.loads
dumps: Any = lambda value: json.dumps(value).encode()  # noqa: E731 - the shortest way
if sys.argv[1:] == ["orjson"]:
    import orjson

    loads, dumps = orjson.loads, orjson.dumps

reading, writing = sys.stdin.buffer, sys.stdout.buffer
while line := reading.readline():
    length = int(line.split(b":")[1])
    reading.readline()
    request = loads(reading.read(length))
    result: object = {}
    if request["method"] == "tools/call":
        with open(request["params"]["arguments"]["file_path"], encoding="utf-8") as file:
            result = {"content": [{"type": "text", "text": file.read()}]}
    if "id" in request:
        body = dumps({"jsonrpc": "2.0", "id": request["id"], "result": result})
        writing.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        writing.flush()
