"""Where a user's files of ours are: what is configured, what is recorded, what hooks remember."""

import os
import sys

_USUAL = {
    "config": ("XDG_CONFIG_HOME", "~/.config/pinfold"),
    "state": ("XDG_STATE_HOME", "~/.local/state/pinfold"),
}


def user_path(kind: str, name: str) -> str:
    """The absolute path of the user's file `name`. `kind`: `config` or `state`.

    What platformdirs says; it is not loaded, which takes as long as a good part of all else that a
    start loads, where only one answer is possible.
    """
    variable, usual = _USUAL[kind]
    home = os.environ.get("HOME", "")
    if sys.platform == "linux" and home[:1] == "/" and not os.environ.get(variable, "").strip():
        return os.path.join(os.path.expanduser(usual), name)
    import platformdirs

    find = {"config": platformdirs.user_config_dir, "state": platformdirs.user_state_dir}[kind]
    return os.path.join(find("pinfold", appauthor=False), name)
