"""What is known of each host: its tools, how it reads a path, where its settings are.

Names follow the hosts' documentation (Claude Code) and what was observed (Qwen Code 0.24.4).
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Kind = Literal["read", "list", "change", "shell", "foreign", "call", "none"]


class HostTool:
    """A tool of a host.

    `kind`: what it does to files (`read`: shows one, so that its text is in the conversation;
    `list`: looks at them in another way; `foreign`: runs what is in another language than that of
    the shell gate; `call`: calls another tool; `none`: nothing). `name`: what the policy and its
    rules call it. `paths`: the arguments that say where; of a shell, the one with the command.
    `patterns`: those with a pattern of paths.
    """

    def __init__(
        self,
        kind: "Kind",
        name: str = "",
        paths: "tuple[str, ...]" = (),
        patterns: "tuple[str, ...]" = (),
    ) -> None:
        self.kind = kind
        self.name = name
        self.paths = paths
        self.patterns = patterns


class Host:
    """One host. `reader`: what its tool for reading is called; `own`: the variables that name the
    project; `directory`: of its settings, below home or the project; `home`: the variable that
    names that directory instead. How it reads a path: `escapes`, it takes backslashes away;
    `composes`, it makes NFC of it."""

    def __init__(  # noqa: PLR0913 - a row of a table
        self,
        tools: "dict[str, HostTool]",
        *,
        layout: str,
        reader: str,
        own: "tuple[str, ...]",
        directory: str,
        home: str,
        escapes: bool = False,
        composes: bool = False,
    ) -> None:
        self.tools = tools
        self.layout = layout
        self.reader = reader
        self.own = own
        self.directory = directory
        self.home = home
        self.escapes = escapes
        self.composes = composes

    def readings(self, raw: str) -> "list[str]":
        """What a path may mean to the host, as it came first, as the host reads it last."""
        trimmed = raw.strip(_BLANKS)
        last = _unescaped(trimmed) if self.escapes else trimmed
        return list(dict.fromkeys((raw, trimmed, last)))


_BLANKS = (
    "\t\n\v\f\r \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""What JavaScript's `trim` takes away."""

_ESCAPED = frozenset(" \t()[]{};|*?$`'\"#&<>!~,")
"""Characters before which Qwen Code takes a backslash away."""


def _unescaped(path: str) -> str:
    if "\\" not in path:
        return path
    kept = []
    for index, char in enumerate(path):
        if char != "\\" or path[index + 1 : index + 2] not in _ESCAPED:
            kept.append(char)
    return "".join(kept)


def _all(kind: "Kind", name: str, paths: "tuple[str, ...]", tools: str) -> "dict[str, HostTool]":
    return dict.fromkeys(tools.split(), HostTool(kind, name, paths))


_OURS = {
    "mcp__pinfold__read_file": HostTool("read", "read_file", ("file_path",)),
    "mcp__pinfold__read_memory": HostTool("read", "read_memory", ("file_path",)),
    "mcp__pinfold__write_file": HostTool("change", "write_file", ("file_path",)),
    "mcp__pinfold__edit": HostTool("change", "edit", ("file_path",)),
}
"""The gateway's own tools, where both stand in front of one agent."""

_CLAUDE_CODE = {
    **_all("change", "write_file", ("file_path",), "Write"),
    **_all("change", "edit", ("file_path",), "Edit MultiEdit"),
    **_all("change", "edit", ("notebook_path",), "NotebookEdit"),
    **_all("read", "read_file", ("file_path",), "Read"),
    **_all("read", "read_file", ("notebook_path",), "NotebookRead"),
    **_all("list", "grep_search", ("path",), "Grep"),
    **_all("list", "list_directory", ("path",), "LS"),
    "Glob": HostTool("list", "list_directory", ("path",), ("pattern",)),
    **_all("shell", "run_shell_command", ("command",), "Bash Monitor"),
    **_all("foreign", "run_shell_command", ("command",), "PowerShell"),
    **_all("list", "read_file", ("filePath",), "LSP"),
    **_all("list", "read_file", ("file_path",), "Artifact SendUserFile"),
    **_all(
        "none",
        "",
        (),
        "Agent AskUserQuestion BashOutput CronCreate CronDelete CronList EnterPlanMode "
        "EnterWorktree ExitPlanMode ExitWorktree KillBash KillShell ListMcpResourcesTool "
        "PushNotification ReadMcpResourceTool RemoteTrigger ScheduleWakeup SendMessage Skill "
        "SlashCommand StructuredOutput Task TaskCreate TaskGet TaskList TaskOutput TaskStop "
        "TaskUpdate TeamCreate TeamDelete TodoRead TodoWrite ToolSearch WebFetch WebSearch "
        "Workflow",
    ),
    **_OURS,
}

_QWEN_CODE = {
    **_all("change", "write_file", ("file_path",), "write_file"),
    **_all("change", "edit", ("file_path",), "edit replace"),
    **_all("change", "edit", ("notebook_path",), "notebook_edit"),
    **_all("read", "read_file", ("file_path",), "read_file"),
    **_all("list", "read_file", ("file_path",), "zoom_image"),
    **_all("list", "read_file", ("filePath",), "lsp"),
    **_all("list", "grep_search", ("path",), "grep_search search_file_content"),
    **_all("list", "list_directory", ("path",), "list_directory"),
    "glob": HostTool("list", "list_directory", ("path",), ("pattern",)),
    **_all("shell", "run_shell_command", ("command",), "run_shell_command monitor"),
    **_all("call", "", ("name", "arguments"), "tool_call"),
    **_all(
        "none",
        "",
        (),
        "agent artifact ask_user_question create_sub_session cron_create cron_delete cron_list "
        "enter_plan_mode enter_worktree exit_plan_mode exit_worktree get_goal list_agents "
        "loop_wakeup propose_goal read_mcp_resource record_artifact record_source report_findings "
        "request_shutdown send_message skill structured_output task task_create task_list "
        "task_stop task_update team_create team_delete team_plan_approval todo_write tool_search "
        "update_goal web_fetch web_search workflow",
    ),
    **_OURS,
}

HOSTS = {
    "claude-code": Host(
        _CLAUDE_CODE,
        layout="claude",
        reader="Read",
        own=("CLAUDE_PROJECT_DIR",),
        directory=".claude",
        home="CLAUDE_CONFIG_DIR",
        composes=True,
    ),
    "qwen-code": Host(
        _QWEN_CODE,
        layout="qwen",
        reader="read_file",
        own=("QWEN_PROJECT_DIR", "CLAUDE_PROJECT_DIR"),
        directory=".qwen",
        home="QWEN_HOME",
        escapes=True,
    ),
}
