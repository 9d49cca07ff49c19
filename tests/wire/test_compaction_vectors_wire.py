"""The observed cases again, asked of a real process: the session's roots are the managed test."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import Raw, cases, clean_env, expanded


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Raw]:
    base: Path = tmp_path_factory.mktemp("compaction")
    with Raw(env=clean_env()) as gateway:
        gateway.initialize()
        for name, root in (("managed", "/mem"), ("nothing", f"{base}/none")):
            memory = {"projectRoot": root, "userRoot": f"{base}/user", "teamRoot": f"{base}/team"}
            gateway.open(base, sessionId=name, memory=memory)
        yield gateway


@pytest.mark.parametrize("case", cases("compaction.json"), ids=lambda case: str(case["name"]))
def test_observed_over_the_wire(raw: Raw, case: dict[str, Any]) -> None:
    session = "managed" if case["preserve"]["prefixes"] else "nothing"
    params = {
        "sessionId": session,
        "format": "gemini",
        "history": expanded(case["history"]),
        "trigger": expanded(case["trigger"]),
        "settings": case["settings"] | {"preservedCounts": True},
    }
    result = raw.result("context/compact", params)
    cleared = [[each["message"], each["part"], each["kind"]] for each in result["cleared"]]
    assert cleared == case["expect"]["cleared"]
    assert result["meta"] == case["expect"]["meta"]
    history = result["history"]
    assert [history[m]["parts"][p] for m, p, _ in cleared] == expanded(
        case["expect"]["replacements"]
    )
