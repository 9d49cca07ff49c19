"""What cattrs says of params that are not those of a method, in the words of this house."""

from cattrs.errors import (
    ClassValidationError,
    ForbiddenExtraKeysError,
    IterableValidationError,
)


def describe(error: BaseException) -> tuple[str, str]:
    """Where (dotted, in wire names; empty for the whole) and what is wrong first."""
    if isinstance(error, ForbiddenExtraKeysError):
        return min(map(str, error.extra_fields)), "is not a known member"
    if isinstance(error, ClassValidationError | IterableValidationError):
        return _describe_group(error)
    if isinstance(error, KeyError):
        return str(error.args[0]), "is missing"
    return "", str(error)


def _describe_group(error: ClassValidationError | IterableValidationError) -> tuple[str, str]:
    noted, plain = error.group_exceptions()
    if not noted:
        return describe(plain[0])
    inner, note = noted[0]
    path, problem = describe(inner)
    if isinstance(inner, KeyError):
        return path, problem
    head, *rest = str(getattr(note, "name", "")).split("_")
    name = head + "".join(part.capitalize() for part in rest)
    return (f"{name}.{path}" if name and path else name + path), problem
