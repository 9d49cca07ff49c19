"""`memory/didChange`: clients hear of changes below a root, before the answer, and of nothing else."""

from pathlib import Path
from typing import Any

from support import Raw, clean_env, details, kind, read, write


def test_changes_below_a_root_are_told(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    env = clean_env(QWEN_CODE_MEMORY_BASE_DIR=str(tmp_path / "memory"), HOME=str(tmp_path))
    with Raw(env) as raw:
        raw.initialize()
        opened = raw.open(tmp_path / "project", "extraction", sessionId="s")
        project, user = opened["roots"][0]["path"], opened["roots"][1]["path"]

        def told(name: str, path: str, **arguments: Any) -> list[Any]:
            raw.notifications.clear()
            raw.call("s", name, file_path=path, **arguments)
            assert all(each["method"] == "memory/didChange" for each in raw.notifications)
            assert all(each["params"]["sessionId"] == "s" for each in raw.notifications)
            return [
                (each["params"]["root"], each["params"]["path"], each["params"]["kind"])
                for each in raw.notifications
            ]

        topic = f"{project}/a/t.md"
        assert told("write_file", topic, content="one\n") == [("project", topic, "created")]
        assert told("write_file", topic, content="one\n") == []  # nothing changed
        assert told("edit", topic, old_string="one", new_string="two") == [
            ("project", topic, "changed")
        ]
        assert told("edit", topic, old_string="two", new_string="x", dry_run=True) == []
        assert told("edit", topic, old_string="nope", new_string="x") == []
        assert told("write_file", f"{user}/u.md", content="x") == [
            ("user", f"{user}/u.md", "created")
        ]
        assert told("write_file", f"{project}/pinned/p.md", content="x") == []
        assert told("read_file", topic) == []
        raw.open(tmp_path / "project", "main", sessionId="m")
        raw.notifications.clear()
        raw.call("m", "write_file", file_path="source.py", content="x")
        assert raw.notifications == []


def test_staleness_and_encodings_are_each_session_s_own(tmp_path: Path) -> None:
    with Raw(clean_env(HOME=str(tmp_path))) as raw:
        raw.initialize()
        for session in "ab":
            raw.open(tmp_path, sessionId=session, scope={"staleness": "require-read"})
        path = write(tmp_path / "f.txt", "端口\n".encode("gbk"))
        assert kind(raw.call("a", "read_file", file_path=path, encoding="gbk")) is None
        assert kind(raw.call("b", "write_file", file_path=path, content="x")) == "not-read"
        done = raw.call("a", "edit", file_path=path, old_string="端", new_string="😀")
        assert details(done)["error"]["encoding"] == "gbk"
        done = raw.call("a", "edit", file_path=path, old_string="端", new_string="港")
        assert kind(done) is None and read(path) == "港口\n".encode("gbk")
