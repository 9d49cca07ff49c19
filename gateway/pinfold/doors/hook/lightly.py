"""Import the policy without attrs and typing: they cost more than all that a hook does.

A hook is a process for every call of every tool, and it makes a few dozen frozen values. attrs and
typing take four times as long to import as Python takes to start. So while the modules of the
policy are imported here, small stand-ins for the two answer; the modules are the same files, and
the tests ask the same vectors of both. Whatever is imported afterwards gets the real ones.
"""

import sys
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MISSING = object()


class _Field:
    """What stands for a default: a value, or what makes it."""

    def __init__(self, name: str = "", default: object = _MISSING, factory: object = None) -> None:
        self.name = name
        self.default = default
        self.factory = factory

    def value(self, cls: type) -> object:
        if self.factory is not None:
            return self.factory()  # type: ignore[operator]
        if self.default is _MISSING:
            raise TypeError(f"{cls.__name__} needs {self.name}")
        return self.default


def _fields(cls: type) -> dict[str, _Field]:
    return cls.__fields__  # type: ignore[attr-defined,no-any-return]


def _define(cls: "type | None" = None, *, eq: bool = True, **_: object) -> "Any":
    if cls is None:
        return lambda cls: _define(cls, eq=eq)
    fields = dict(getattr(cls, "__fields__", {}))
    for name in getattr(cls, "__annotations__", ()):
        given = cls.__dict__.get(name, _MISSING)
        if given is _MISSING and name in fields:  # of a base
            continue
        fields[name] = given if isinstance(given, _Field) else _Field(name, given)
        fields[name].name = name
        if given is not _MISSING:
            delattr(cls, name)
    cls.__fields__ = fields  # type: ignore[attr-defined]
    cls.__init__ = _init  # type: ignore[misc]
    cls.__repr__ = _repr  # type: ignore[method-assign,assignment]
    if eq:
        cls.__eq__ = _eq  # type: ignore[method-assign,assignment]
        cls.__hash__ = _hash  # type: ignore[method-assign,assignment]
    return cls


def _init(self: object, *args: object, **given: object) -> None:
    fields, values = _fields(type(self)), self.__dict__
    if len(args) > len(fields):
        raise TypeError(f"{type(self).__name__} takes {len(fields)} values")
    values.update(zip(fields, args))
    for name, value in given.items():
        if name not in fields or name in values:
            raise TypeError(f"{type(self).__name__} takes no {name}")
        values[name] = value
    if len(values) < len(fields):
        for name, field in fields.items():
            if name not in values:
                values[name] = field.value(type(self))


def _values(value: object) -> tuple[object, ...]:
    return tuple(value.__dict__[name] for name in _fields(type(value)))


def _repr(self: object) -> str:
    return f"{type(self).__name__}{_values(self)!r}"


def _eq(self: object, other: object) -> object:
    return _values(self) == _values(other) if type(self) is type(other) else NotImplemented


def _hash(self: object) -> int:
    return hash(_values(self))


def _evolve(value: object, **changes: object) -> object:
    return type(value)(**{**value.__dict__, **changes})


def _attrs() -> ModuleType:
    module = ModuleType("attrs")
    members: dict[str, object] = {
        "frozen": _define,
        "define": _define,
        "field": lambda default=_MISSING, factory=None, **_: (
            default if isinstance(default, _Field) else _Field("", default, factory)
        ),
        "Factory": lambda factory: _Field("", _MISSING, factory),
        "evolve": _evolve,
        "fields": lambda cls: tuple(_fields(cls).values()),
        "asdict": lambda value: dict(value.__dict__),
    }
    module.__dict__.update(members)
    return module


class _Form:
    """A type that nobody looks at: subscripted, called, joined with `|`, or a base."""

    def __init__(self, args: tuple[object, ...] = ()) -> None:
        self.args = args

    def __getitem__(self, args: object) -> "_Form":
        return _Form(args if isinstance(args, tuple) else (args,))

    def __call__(self, *_: object, **__: object) -> "_Form":
        return self

    def __or__(self, _: object) -> "_Form":
        return self

    __ror__ = __or__

    def __mro_entries__(self, _: object) -> tuple[type, ...]:
        return ()


def _typing() -> ModuleType:
    module = ModuleType("typing")
    module.__dict__.update(
        {
            "TYPE_CHECKING": False,
            "get_args": lambda form: form.args,
            "__getattr__": lambda _: _Form(),
        }
    )
    return module


def load(*names: str) -> None:
    """Import modules of ours with the stand-ins, unless the real ones are there already."""
    before = {name: sys.modules.get(name) for name in ("attrs", "typing")}
    if not any(before.values()):
        sys.modules.update({"attrs": _attrs(), "typing": _typing()})
    try:
        for name in names:
            __import__(name)
    finally:
        for name, module in before.items():
            if module is None:
                sys.modules.pop(name, None)
