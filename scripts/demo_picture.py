"""`pinfold demo` as a picture: a real run in a real terminal, drawn as SVG on standard output.

`docs/images/demo.svg` is its output (`make pictures`), and a test keeps the two in step. The fonts
are those of whoever looks: a picture in a page may load nothing, and each letter has its column.
"""

import os
import pty
import re
import subprocess
import sys
from html import unescape

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

COMMAND = "pinfold demo"
COLUMNS = 80
# Of a letter in rich's pictures: height, width by height, and from one line to the next.
_HEIGHT, _ASPECT, _LINE = 20, 0.61, 24.4

# Foreground, background, then the eight colours, dim and bright.
_THEME = TerminalTheme(
    (22, 27, 34),
    (214, 221, 229),
    [
        (72, 79, 88),
        (255, 123, 114),
        (86, 211, 100),
        (227, 179, 65),
        (121, 192, 255),
        (210, 168, 255),
        (86, 212, 221),
        (177, 186, 196),
    ],
)
_FONTS = (
    "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace"
)
# As rich's own, but for its fonts, which would come from elsewhere.
_FORMAT = f"""\
<svg viewBox="0 0 {{width}} {{height}}" xmlns="http://www.w3.org/2000/svg" role="img">
<title>{COMMAND}: every way into pinned/ is denied, and the file is unharmed</title>
<style>
.{{unique_id}}-matrix {{{{ font: {{char_height}}px {_FONTS}; }}}}
.{{unique_id}}-title {{{{ font: bold 18px system-ui, sans-serif; }}}}
{{styles}}
</style>
<defs>
<clipPath id="{{unique_id}}-clip-terminal">
<rect width="{{terminal_width}}" height="{{terminal_height}}"/>
</clipPath>
{{lines}}
</defs>
{{chrome}}
<g transform="translate({{terminal_x}}, {{terminal_y}})" \
clip-path="url(#{{unique_id}}-clip-terminal)">
{{backgrounds}}
<g class="{{unique_id}}-matrix">
{{matrix}}
</g>
</g>
</svg>
"""


def run() -> str:
    """What a terminal of COLUMNS gets from `pinfold demo`, escapes and all.

    Raises CalledProcessError where the demo did not go as it should.
    """
    ours, theirs = pty.openpty()
    env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    size = {"COLUMNS": str(COLUMNS), "LINES": "60", "TERM": "xterm-256color", "COLORTERM": ""}
    command = [sys.executable, "-m", "pinfold", "demo"]
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=env | size | {"PYTHONUTF8": "1"}
    ) as process:
        os.close(theirs)
        with os.fdopen(ours, "rb", buffering=0) as terminal:
            shown = b"".join(_pieces(terminal.fileno()))
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, shown)
    return shown.decode("utf-8").replace("\r\n", "\n")


def _pieces(terminal: int) -> "list[bytes]":
    pieces = []
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # on Linux, how a terminal ends whose last program is gone
            return pieces
        if not piece:
            return pieces
        pieces.append(piece)


def draw(shown: str) -> str:
    """The picture of that output, below a prompt with the command."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        console = Console(
            record=True,
            width=COLUMNS,
            file=nowhere,
            force_terminal=True,
            color_system="truecolor",
            highlight=False,
        )
        console.print(Text.assemble(("$ ", "green"), (COMMAND, "bold"), "\n"))
        console.print(Text.from_ansi(shown.strip("\n")), "\n", sep="")
        svg = console.export_svg(
            title=COMMAND,
            theme=_THEME,
            code_format=_FORMAT,
            font_aspect_ratio=_ASPECT,
            unique_id="demo",
        )
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


def plain(shown: str) -> list[str]:
    """The lines of that output as text."""
    return [line.rstrip() for line in Text.from_ansi(shown.strip("\n")).plain.split("\n")]


def told(svg: str) -> list[str]:
    """The lines of text that somebody sees in a picture by `draw`, below its prompt."""
    lines: dict[int, str] = {}
    pattern = r'<text [^>]*x="([\d.]+)" y="([\d.]+)"[^>]*clip-path="[^>]*>([^<]*)</text>'
    for x, y, text in re.findall(pattern, svg):
        row, column = round((float(y) - _HEIGHT) / _LINE), round(float(x) / (_HEIGHT * _ASPECT))
        lines[row] = lines.get(row, "").ljust(column) + unescape(text).replace("\xa0", " ")
    last = max(row for row, line in lines.items() if line.strip())
    return [lines.get(row, "").rstrip() for row in range(2, last + 1)]


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    sys.stdout.write(draw(run()))
