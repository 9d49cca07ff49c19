"""What `--help` says of each command: one table of a summary, a description and examples.

The options are said where they are read, in `parser`. All lines fit a terminal of 80 columns, as
they stand here: nothing folds them again.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable
    from typing import Any

PROGRAM = """\
A gateway between an AI agent and its file tools: documents below pinned/ stay
unharmed, and what was read of memory survives compaction.
"""
PROGRAM_EXAMPLES = """\
Start with:
  pinfold demo                       see it work; nothing of yours is touched
  pinfold doctor                     in a project: is anything wrong there?
  pinfold hook --install --host claude-code
                                     protect pinned/ there, after a question

`pinfold COMMAND --help` has the options of a command, and examples.
"""

# Name: what it does in a line, what there is to know, examples with the exit status.
COMMANDS = {
    "serve": (
        "speak to a host or an editor on stdin and stdout",
        """\
Serves JSON-RPC on stdin and stdout, until the client ends it: pinfold's own
protocol, the language server protocol, or MCP. Which one, the first message
says. Hosts and editors start this; there is nothing to see in a terminal.
""",
        """\
An entry for an agent host (MCP), whose agent may not change pinned/:
  {"mcpServers": {"pinfold": {
    "command": "pinfold", "args": ["serve", "--profile", "dream"]}}}

In front of a file server that you have; its command stands after `--`:
  pinfold serve --profile dream --upstream fs -- \\
    npx -y @modelcontextprotocol/server-filesystem /home/me

Exit status: 0 after a shutdown, 1 without one, 143 and 130 by a signal.
""",
    ),
    "hook": (
        "decide about a host's own tools: install it once",
        """\
Reads an event from stdin and answers it on stdout, as a hook of an agent host
does. For people: --install puts it into the host's settings, --uninstall
takes it out, --show prints what sessions have read of memory.
""",
        """\
Examples:
  pinfold hook --install --host claude-code            shows a diff, and asks
  pinfold hook --install --host qwen-code --profile dream --yes
  pinfold hook --show
  pinfold hook --uninstall --host claude-code

Exit status, as hosts understand it: 0 answered, 2 blocked.
""",
    ),
    "explain": (
        "say whether a call would be allowed, and why",
        """\
Decides as a session would, and changes nothing: whether a call of a tool would
be allowed, by which rule, and where its path really leads.
""",
        """\
Examples:
  pinfold explain notes/today.md
  pinfold explain src/main.py --tool write_file --profile main
  pinfold explain 'grep -r invoice . | head' --tool run_shell_command
  pinfold explain docs/a.md --rules rules.json --json
  pinfold explain docs/a.md --host claude-code --tool Write

Exit status: 0 allow, 1 deny or ask, 2 it could not be decided.
""",
    ),
    "roots": (
        "show where the memory of a project is",
        """\
Shows the memory roots of a project: where they are, where links lead, and which
directories are pinned.
""",
        """\
Examples:
  pinfold roots
  pinfold roots --layout claude      where Claude Code keeps memory
  pinfold roots --json --project ~/work/site

Exit status: 0, or 2 if it could not be done.
""",
    ),
    "index": (
        "list the memory documents of a project",
        """\
Lists the memory documents of a project, newest first, pinned ones marked; then
what looked like a document and is none, with the reason.
""",
        """\
Examples:
  pinfold index
  pinfold index --limit 20 --json

Exit status: 0, or 2 if it could not be done.
""",
    ),
    "doctor": (
        "look for what is wrong with memory, rules and this machine",
        """\
Looks for what is wrong with memory, with what only looks pinned, with rules and
with this machine, and says what to do about it. Changes nothing.
""",
        """\
Examples:
  pinfold doctor
  pinfold doctor --layout claude --project ~/work/site
  pinfold doctor --rules rules.json --json

Exit status: 0 nothing is wrong, 1 something is, 2 it could not be done.
""",
    ),
    "compact": (
        "clear old tool results in a transcript, and keep what is memory",
        """\
Clears old tool results in a transcript, and keeps what was read of memory. The
new transcript goes to stdout; the file stays as it is.
""",
        """\
Examples:
  pinfold compact chat.json --format anthropic --host claude-code --diff
  pinfold compact chat.json --format openai --keep-recent 3 > smaller.json
  pinfold compact - --format gemini < chat.json > smaller.json

Exit status: 0, or 2 if it could not be done.
""",
    ),
    "audit": (
        "show the record of what was decided",
        """\
Shows the record of what was decided, oldest first. A host switches the record
on; it names paths, never contents.
""",
        """\
Examples:
  pinfold audit --denied
  pinfold audit --follow --json

Exit status: 0; 2 the record cannot be read; 130 after Ctrl-C.
""",
    ),
    "completion": (
        "print a script that completes pinfold's commands in a shell",
        """\
Prints a script for a shell: TAB completes commands, options, and their values.
""",
        """\
Once, for you alone; zsh also needs ~/.zfunc in its fpath:
  D=~/.local/share/bash-completion/completions
  mkdir -p $D && pinfold completion bash > $D/pinfold
  mkdir -p ~/.zfunc && pinfold completion zsh > ~/.zfunc/_pinfold
  D=~/.config/fish/completions
  mkdir -p $D && pinfold completion fish > $D/pinfold.fish
""",
    ),
    "demo": (
        "see it work, in a temporary directory",
        """\
Starts a gateway in a temporary directory with memory of its own, reads, edits,
and tries every way into pinned/. Nothing of yours is touched.
""",
        """\
Exit status: 0 everything happened as it should, 1 it did not.
""",
    ),
}


def add(commands: argparse._SubParsersAction[Any], name: str) -> argparse.ArgumentParser:
    """The parser of that command, with its words and without options yet."""
    import argparse

    summary, description, examples = COMMANDS[name]
    made: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=description.rstrip(),
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.set_defaults(parser=made)
    return made


def more(program: str) -> str:
    """Where a mistake on the command line is looked up."""
    if program != "pinfold":
        return f"`{program} --help` has its options, and examples.\n"
    names = "".join(f"  {name:12}{summary}\n" for name, (summary, _, _) in COMMANDS.items())
    return f"The commands are:\n{names}\n{PROGRAM_EXAMPLES}"


def every(parser: argparse.ArgumentParser) -> Iterable[argparse.ArgumentParser]:
    """That parser, and those of all its commands."""
    import argparse

    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from every(command)
