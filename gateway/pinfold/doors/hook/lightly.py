"""Import the policy without msgspec and typing: they cost more than all that a hook does.

A hook is a process for every call of every tool, and it makes a few dozen frozen values. msgspec
and typing take as long to import as Python takes to start. So while the modules of the policy are
imported here, small stand-ins for the two answer; the modules are the same files, and the tests
ask the same vectors of both. Whatever is imported afterwards gets the real ones.
"""

import sys
from types import ModuleType, SimpleNamespace

_MISSING = object()


class _Field:
    """What stands for a default: a value, or what makes it."""

    def __init__(self, default: object = _MISSING, default_factory: object = None) -> None:
        self.default = default
        self.factory = default_factory


class _Struct:
    """The base of all values. Of what is said of a class only `eq` counts: without it, only the
    same object is equal."""

    __fields__: "dict[str, _Field]" = {}  # noqa: RUF012
    __struct_fields__: tuple[str, ...] = ()

    def __init_subclass__(cls, *, eq: bool = True, **_: object) -> None:
        fields = dict(cls.__fields__)
        for name, annotation in cls.__annotations__.items():
            if getattr(annotation, "name", None) == "ClassVar":
                continue
            given = cls.__dict__.get(name, _MISSING)
            fields[name] = given if isinstance(given, _Field) else _Field(given)
            if given is not _MISSING:
                delattr(cls, name)
        cls.__fields__ = fields
        cls.__struct_fields__ = tuple(fields)
        if eq:
            cls.__eq__ = _eq  # type: ignore[method-assign,assignment]
            cls.__hash__ = _hash  # type: ignore[method-assign,assignment]

    def __init__(self, *args: object, **given: object) -> None:
        fields, values = self.__fields__, self.__dict__
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
                    values[name] = self.__default(name, field)

    def __default(self, name: str, field: _Field) -> object:
        if field.factory is not None:
            return field.factory()  # type: ignore[operator]
        if field.default is _MISSING:
            raise TypeError(f"{type(self).__name__} needs {name}")
        return field.default

    def __repr__(self) -> str:
        return f"{type(self).__name__}{_values(self)!r}"


def _values(value: _Struct) -> tuple[object, ...]:
    return tuple(value.__dict__[name] for name in value.__struct_fields__)


def _eq(self: _Struct, other: _Struct) -> object:
    return _values(self) == _values(other) if type(self) is type(other) else NotImplemented


def _hash(self: _Struct) -> int:
    return hash(_values(self))


def _msgspec() -> ModuleType:
    module = ModuleType("msgspec")
    structs = SimpleNamespace(
        replace=lambda value, **changes: type(value)(**{**value.__dict__, **changes}),
        asdict=lambda value: dict(value.__dict__),
    )
    module.__dict__.update({"Struct": _Struct, "field": _Field, "structs": structs})
    return module


class _Form:
    """A type that nobody looks at: subscripted, called, joined with `|`, or a base."""

    def __init__(self, name: str, args: tuple[object, ...] = ()) -> None:
        self.name = name
        self.args = args

    def __getitem__(self, args: object) -> "_Form":
        return _Form(self.name, args if isinstance(args, tuple) else (args,))

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
        {"TYPE_CHECKING": False, "get_args": lambda form: form.args, "__getattr__": _Form}
    )
    return module


def load(*names: str) -> None:
    """Import modules of ours with the stand-ins, unless the real ones are there already."""
    before = {name: sys.modules.get(name) for name in ("msgspec", "typing")}
    if not any(before.values()):
        sys.modules.update({"msgspec": _msgspec(), "typing": _typing()})
    try:
        for name in names:
            __import__(name)
    finally:
        for name, module in before.items():
            if module is None:
                sys.modules.pop(name, None)
