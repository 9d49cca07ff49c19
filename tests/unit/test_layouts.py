"""Where the roots are, by convention."""

from pathlib import Path
from typing import Any

import pytest

from pinfold.memory.layouts import Surroundings, claude, project_key, qwen
from pinfold.memory.roots import find_git_root
from pinfold.policy.names import below
from support import Embedded, Layout, cases


@pytest.mark.parametrize("case", cases("roots.json"), ids=lambda case: str(case["name"]))
def test_qwen_layout_is_the_observed_one(case: dict[str, Any], tmp_path: Path) -> None:
    base = tmp_path.resolve()
    layout = Layout(base, case)
    layout.prepare()
    around = Surroundings(
        project=layout.project,
        git_root=find_git_root(layout.project),
        env=layout.env,
        home=layout.env["HOME"],
        cwd=layout.text(case.get("cwd", "/")),
    )
    found = qwen(around)

    def expected(name: str) -> str:
        return layout.text(case["expect"][name]).replace("${BASE_KEY}", project_key(str(base)))

    assert found.base == expected("memoryBaseDir")
    assert found.project == expected("project") == expected("trustedProjectRoot")
    assert found.project.rpartition("/")[0] == expected("stateDir")
    assert found.user == expected("user")
    assert found.team == expected("team")
    assert found.anchor == expected("trustedAnchor")
    assert below(found.project, found.anchor)
    if "key" in case:
        assert project_key(case["key"]) == case["expect"]["projectKey"]


@pytest.mark.parametrize(
    ("env", "git_root", "project"),
    [
        ({}, None, "/home/x/.claude/projects/-w-a-b/memory"),
        ({}, "/w", "/home/x/.claude/projects/-w/memory"),
        ({"CLAUDE_CONFIG_DIR": ""}, None, "/home/x/.claude/projects/-w-a-b/memory"),
        ({"CLAUDE_CONFIG_DIR": "~/c"}, None, "/home/x/c/projects/-w-a-b/memory"),
        ({"CLAUDE_CONFIG_DIR": "/c/"}, None, "/c/projects/-w-a-b/memory"),
        (
            {"QWEN_CODE_MEMORY_PROJECT_SCOPE": "workspace"},
            "/w",
            "/home/x/.claude/projects/-w/memory",
        ),
    ],
)
def test_claude_layout(env: dict[str, str], git_root: str | None, project: str) -> None:
    found = claude(Surroundings("/w/a-b", git_root, env, "/home/x", "/"))
    assert (found.project, found.user, found.team) == (project, None, None)
    assert below(found.project, found.anchor)


@pytest.mark.parametrize(
    ("target", "decision"),
    [
        (None, "allow"),
        ("projects/other", "allow"),
        ("projects/other/deep", "deny"),
        ("projects", "deny"),
        ("elsewhere", "deny"),
        ("../elsewhere", "deny"),
    ],
)
def test_a_linked_project_may_be_a_sibling_and_nothing_else(
    target: str | None, decision: str, tmp_path: Path
) -> None:
    """A link that is checked in, or made by an agent, must not move where writing is allowed."""
    place = Embedded(tmp_path.resolve())
    base = place.base / "memory"
    state = base / "projects" / project_key(str(place.project))
    for name in ("projects/other/deep/memory", "projects/memory", "elsewhere/memory"):
        (base / name).mkdir(parents=True)
    (place.base / "elsewhere/memory").mkdir(parents=True)
    if target is None:
        (state / "memory").mkdir(parents=True)
    else:
        state.symlink_to(base / target)
    session = place.open("dream")
    told = place.explain(session, "write_file", file_path=f"{state}/memory/x.md", content="x")
    assert (told["decision"], told["rule"]) == (
        decision,
        "default" if decision == "allow" else "outside-memory",
    )


def test_a_dangling_git_link_is_no_repository(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/.git").symlink_to("nowhere")
    assert find_git_root(str(tmp_path / "a")) != str(tmp_path / "a")
    (tmp_path / "nowhere").write_text("x")
    (tmp_path / "a/nowhere").write_text("x")
    assert find_git_root(str(tmp_path / "a")) == str(tmp_path / "a")
