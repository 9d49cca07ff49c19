"""Where memory roots are by convention. Pure: the environment and the git root come in.

The facts are observed ones (qwen-code 0.24.4) and stand in section 3 of the contract.
"""

from collections.abc import Collection, Mapping

import msgspec

from pinfold.policy.names import collapse


class Layout(msgspec.Struct, frozen=True):
    """Literal absolute paths. `anchor` is the prefix of the project root that is trusted to be
    resolved; `user` and `team` are None where the convention has none."""

    base: str
    project: str
    anchor: str
    user: str | None
    team: str | None


class Surroundings(msgspec.Struct, frozen=True):
    """What a layout depends on. `git_root` is the nearest directory above the project, or the
    project itself, that holds a `.git`; None if there is none."""

    project: str
    git_root: str | None
    env: Mapping[str, str]
    home: str
    cwd: str

    def path(self, *variables: str) -> str | None:
        """The first of these variables that is set and not empty, as an absolute path."""
        for variable in variables:
            if value := self.env.get(variable):
                if value == "~" or value.startswith("~/"):
                    return collapse(self.home + value[1:])
                return collapse(value if value.startswith("/") else f"{self.cwd}/{value}")
        return None


def project_key(path: str) -> str:
    """A directory name for a path: every UTF-16 unit outside `[A-Za-z0-9]` becomes `-`."""
    keep = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    return "".join(c if c in keep else "-" * (2 if ord(c) > 0xFFFF else 1) for c in path)


def qwen(around: Surroundings) -> Layout:
    """The convention of Qwen Code."""
    env = around.env
    named = around.path("QWEN_CODE_MEMORY_BASE_DIR", "QWEN_RUNTIME_DIR", "QWEN_HOME")
    base = named or collapse(f"{around.home}/.qwen")
    repository = around.git_root or around.project
    if env.get("QWEN_CODE_MEMORY_LOCAL") == "1":
        project, anchor = f"{around.project}/.qwen/memory", around.project
    else:
        workspace = env.get("QWEN_CODE_MEMORY_PROJECT_SCOPE", "").strip().lower() == "workspace"
        key = project_key(around.project if workspace else repository)
        project, anchor = f"{base}/projects/{key}/memory", base
    return Layout(base, project, anchor, f"{base}/memories", f"{repository}/.qwen/team-memory")


def claude(around: Surroundings) -> Layout:
    """The convention of Claude Code: a project root, and no other."""
    base = around.path("CLAUDE_CONFIG_DIR") or collapse(f"{around.home}/.claude")
    key = project_key(around.git_root or around.project)
    return Layout(base, f"{base}/projects/{key}/memory", base, None, None)


LAYOUTS = {"qwen": qwen, "claude": claude}


def elsewhere(around: Surroundings, roots: Collection[str]) -> list[tuple[str, str]]:
    """Where memory of this project would be by the conventions, but for these roots: the name of
    the layout and a path, whether something is there or not."""
    found = []
    for name, layout in LAYOUTS.items():
        made = layout(around)
        paths = (made.project, made.user, made.team)
        found += [(name, path) for path in paths if path is not None and path not in roots]
    return found
