"""What a person can be told at the command line, by a hook, in an editor and by the doctor: a row
for each kind, beside those of the contract.

`docs/errors.md` is made of it (`make generated`); no command imports it.
"""

from pinfold.doctor.finding import KINDS as FINDINGS
from pinfold.language.diagnose import SEVERITIES
from pinfold_protocol.catalogue import Kind

COMMAND_ERRORS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            "command-line",
            "The command line cannot be understood. Exit status 2.",
            "Look at the usage above the message, or at `pinfold COMMAND --help`.",
        ),
        Kind(
            "command-output",
            "A file or the output failed, or the current directory is gone. Exit status 2.",
            "Mend what the message names, and try again.",
        ),
        Kind(
            "command-value",
            "An option, a file of rules or the configuration holds something that cannot be; the "
            "message names the file and the member. Exit status 2.",
            "Correct that member. The texts are those of [wrong params](#rpc-invalid-params).",
        ),
        Kind(
            "command-transcript",
            "`pinfold compact` cannot read the history. Exit status 2.",
            "Give a list of messages, an object that holds one, or JSON Lines, in UTF-8.",
        ),
        Kind(
            "hook-options",
            "The options of the hook are wrong. In a host's event, a tool that may change "
            "something does not run.",
            "Correct the hook's command in the host's settings; `pinfold hook --install` writes "
            "it.",
        ),
        Kind(
            "hook-event",
            "The host's event cannot be understood. A tool that may change something does not run.",
            "Check `--host`, and the host's version. Hosts run `pinfold hook`; people do not.",
        ),
        Kind(
            "hook-fault",
            "The hook gave up: no decision in time, or a mistake in pinfold. A tool that may "
            "change something does not run.",
            "Raise `--deadline` where the disk is slow; else run `pinfold doctor`.",
        ),
        Kind(
            "hook-settings",
            "The host's settings cannot be changed by `pinfold hook --install`. They are as they "
            "were.",
            "Mend the line that the message names, or put the entry in by hand.",
        ),
    )
}
"""By anchor."""

__all__ = ["COMMAND_ERRORS", "FINDINGS", "SEVERITIES"]
