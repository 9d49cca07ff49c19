"""Clearing old tool results out of a conversation, and keeping what was read of managed memory.

    params = CompactParams("anthropic", history, ForceTrigger())
    result = compact(params, Evidence(is_managed, tags))

Pure: what is managed and which tags count come in as arguments, the history is never changed.
"""

from pinfold.compaction.compact import Verdict, compact, examine
from pinfold.compaction.planner import Plan, Record, plan
from pinfold.compaction.scan import Evidence

__all__ = ["Evidence", "Plan", "Record", "Verdict", "compact", "examine", "plan"]
