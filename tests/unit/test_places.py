"""Where a user's files are: what platformdirs says, also where it is not asked."""

import os
from pathlib import Path

import platformdirs
import pytest

from pinfold.places import user_path

_FINDERS = {"config": platformdirs.user_config_dir, "state": platformdirs.user_state_dir}


@pytest.mark.parametrize("kind", _FINDERS)
@pytest.mark.parametrize(
    "said", [None, "", "  ", "/elsewhere", "relative", "~/mine", "/with/slash/"]
)
@pytest.mark.parametrize(
    "home", ["/home/someone", "/home/some one", "/", "", "relative", "~", None]
)
def test_is_what_platformdirs_says(
    monkeypatch: pytest.MonkeyPatch, kind: str, said: str | None, home: str | None
) -> None:
    for name, value in {f"XDG_{kind.upper()}_HOME": said, "HOME": home}.items():
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    expected = os.path.join(_FINDERS[kind]("pinfold", appauthor=False), "a.json")
    assert user_path(kind, "a.json") == expected
    assert Path(expected).is_absolute()
