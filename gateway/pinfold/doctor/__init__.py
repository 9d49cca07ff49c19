"""`pinfold doctor`: what this machine gives, what lies in the memory roots, and what to do.

Everything is looked at, nothing is changed, but for two temporaries with the gateway's own kind of
name that exist for a moment in each root: only so can be told what its volume does.
"""

from pinfold.doctor.examine import Case, examine
from pinfold.doctor.finding import Finding, as_json, is_wrong
from pinfold.doctor.tree import Limits

__all__ = ["Case", "Finding", "Limits", "as_json", "examine", "is_wrong"]
