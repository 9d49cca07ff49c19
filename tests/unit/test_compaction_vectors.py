"""What was observed of microcompaction, as data: tests/vectors/compaction.json."""

import copy
from typing import Any

import pytest

from pinfold.compaction import Evidence, compact
from pinfold_protocol.compaction import CompactParams
from pinfold_protocol.convert import structure, unstructure
from support import cases, expanded


def observed(case: dict[str, Any]) -> tuple[CompactParams, Evidence]:
    """A case as a request, with the observed way of counting, and its managed test."""
    params = structure(
        {
            "format": "gemini",
            "history": expanded(case["history"]),
            "trigger": expanded(case["trigger"]),
            "settings": case["settings"] | {"preservedCounts": True},
        },
        CompactParams,
    )
    paths, prefixes = set(case["preserve"]["paths"]), tuple(case["preserve"]["prefixes"])
    return params, Evidence(lambda path: path in paths or path.startswith(prefixes))


CASES = cases("compaction.json")


def test_the_vectors_are_there() -> None:
    assert len(CASES) >= 77


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['category']}: {case['name']}")
def test_observed(case: dict[str, Any]) -> None:
    params, evidence = observed(case)
    before = copy.deepcopy(params.history)
    result = unstructure(compact(params, evidence))
    expected = case["expect"]
    cleared = [[each["message"], each["part"], each["kind"]] for each in result["cleared"]]
    assert cleared == expected["cleared"]
    assert result["meta"] == expected["meta"]
    assert params.history == before
    history = result["history"]
    assert [history[m]["parts"][p] for m, p, _ in cleared] == expanded(expected["replacements"])
    untouched = {m for m, _, _ in cleared}
    assert all(history[i] is params.history[i] for i in range(len(before)) if i not in untouched)
