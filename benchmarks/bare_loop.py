"""The practical floor: read a frame, json, open the file, write. No policy, no checks."""

import json
import sys

reading, writing = sys.stdin.buffer, sys.stdout.buffer
while line := reading.readline():
    length = int(line.split(b":")[1])
    reading.readline()
    request = json.loads(reading.read(length))
    result: object = {}
    if request["method"] == "tools/call":
        with open(request["params"]["arguments"]["file_path"], encoding="utf-8") as file:
            result = {"content": [{"type": "text", "text": file.read()}]}
    if "id" in request:
        body = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode()
        writing.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        writing.flush()
