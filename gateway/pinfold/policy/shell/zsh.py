"""What zsh reads otherwise than bash: some hosts hand a command to whatever the user's shell is.

Most of it stands where it is met (words, redirections, conditions); here are the variables.
"""

import re

_PATHS = ("path", "cdpath", "fpath", "mailpath", "manpath", "module_path", "fignore", "watch")
_SHELL = (
    *("argv", "pipestatus", "status", "signals", "psvar", "prompt", "histchars", "killring"),
    *("zsh_eval_context", "zsh_scheduled_events", "command_not_found_handler"),
)
_MODULES = (  # some of these are loaded by being named
    *(
        "aliases",
        "builtins",
        "commands",
        "dirstack",
        "funcfiletrace",
        "funcsourcetrace",
        "funcstack",
    ),
    *(
        "functions",
        "functions_source",
        "functrace",
        "galiases",
        "history",
        "historywords",
        "jobdirs",
    ),
    *("jobstates", "jobtexts", "modules", "nameddirs", "options", "parameters", "patchars"),
    *(
        "reswords",
        "saliases",
        "userdirs",
        "usergroups",
        "termcap",
        "terminfo",
        "mapfile",
        "langinfo",
    ),
    *(
        "errnos",
        "sysparams",
        "epochtime",
        "keymaps",
        "widgets",
        "compstate",
        "words",
        "region_highlight",
    ),
)
_CUSTOM = ("infopath", "ld_library_path", "ld_preload", "pythonpath", "perl5lib", "gopath")
"""Often tied to the name in capitals by the user."""
_SPECIAL = frozenset((*_PATHS, *_SHELL, *_MODULES, *_CUSTOM, "auto_resume"))
_FAMILIES = re.compile(r"dis_.*|zsh.*|zle_.*|zcurses_.*|.*_functions|v?comp.*")


def is_special(name: str) -> bool:
    """Whether a variable of lower-case letters means something to a shell: to zsh `path` is PATH,
    `aliases` and `functions` are what it runs, and by `mapfile` it writes files."""
    return name in _SPECIAL or _FAMILIES.fullmatch(name) is not None
