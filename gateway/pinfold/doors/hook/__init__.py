"""The door for hosts that run a command around each of their own tools: `pinfold hook`.

It is spawned for every call, so nothing here imports what a decision does not need: `lightly` says
how, `hosts` holds what is known of each host, `events` reads and answers, `judge` decides by the
code behind `policy/explain`, `reads` keeps what was read, `process` runs.
"""
