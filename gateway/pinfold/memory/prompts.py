"""Sentences that a host adds to an agent's prompt, derived from the effective scope."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pinfold_protocol.session import Profile, Scope

_PINNED = (
    "Documents in the top-level pinned/ directory of a memory root are curated by hand: you may "
    "read them, but never change, move, merge into or delete them.",
    "Keep the entries of pinned documents in the memory index as long as they are valid.",
)
_DREAM = (
    "Leave pinned documents out of consolidation altogether: they are neither sources to compare "
    "nor targets to merge into nor candidates for deletion."
)


def sentences(*, protected: bool, dreaming: bool) -> list[str]:
    """Empty where nothing is protected."""
    if not protected:
        return []
    return [*_PINNED, _DREAM] if dreaming else list(_PINNED)


def prompt_rules(profile: "Profile", scope: "Scope") -> list[str]:
    """The sentences for a session."""
    return sentences(protected=scope.protect_pinned, dreaming=profile == "dream")
