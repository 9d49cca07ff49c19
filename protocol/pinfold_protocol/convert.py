"""JSON values and the types of the contract, strict where a typo would fail open.

Nothing is coerced: a number is no string, `true` is no number, an unknown member is an error.
msgspec converts what needs nothing else; the rules stand here, in words for whoever sent a value,
and a property shows that both say the same (tests/unit/test_convert.py).
"""

import math
from collections.abc import Callable, Iterable
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from pinfold_protocol.errors import invalid_params, perhaps, short
from pinfold_protocol.wire import Wire

T = TypeVar("T")
_Read = Callable[[Any], Any]
"""A JSON value → a value of one type. Raises _Problem."""
_Write = Callable[[Any], Any]
"""A value of one type → JSON."""


class _Problem(Exception):
    """What is wrong with a value, in words for whoever sent it; and where in it."""

    def __init__(self, words: str, path: str = "") -> None:
        super().__init__(words)
        self.words = words
        self.path = path

    def below(self, step: str) -> "_Problem":
        """The same problem, seen from one level above."""
        return _Problem(self.words, _join(step, self.path))


def _join(outer: str, inner: str) -> str:
    if not outer or not inner or inner.startswith("["):
        return outer + inner
    return f"{outer}.{inner}"


def structure(value: Any, cls: type[T], at: str = "") -> T:
    """A JSON value → an instance of `cls`, a type of the contract or built of them.

    Raises RpcError (-32602) that names the first member that is wrong, below `at`.
    """
    wanted: Any = cls
    if _is_plain(wanted):
        try:
            return msgspec.convert(value, cls)
        except (msgspec.ValidationError, UnicodeError):
            pass  # our own rules say it better, or know that 5.0 is whole
    try:
        built: T = _reader(wanted)(value)
    except _Problem as problem:
        raise invalid_params(_join(at, problem.path), problem.words) from None
    return built


def unstructure(value: Any) -> Any:
    """An instance of one of our types → its JSON value; anything else stays as it is."""
    cls: Any = type(value)
    return _writer(cls)(value)


def wire_names(cls: type[Any]) -> dict[str, str]:
    """The names that the members of a type have on the wire, by their own, in order."""
    names = zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True)
    return {name: wire for name, wire in names if name not in _off_wire(cls)}


def _off_wire(cls: type[Any]) -> set[str]:
    """Members that are none on the wire."""
    inner = (cls.given_in, cls.further_in) if issubclass(cls, Wire) else ()
    return {name for name in inner if name is not None}


def _hints(cls: type[Any]) -> dict[str, Any]:
    """The types of the members that are on the wire, by their own names."""
    hints = get_type_hints(cls)
    return {name: hints[name] for name in wire_names(cls)}


def _omitted(cls: type[Any]) -> tuple[str, ...]:
    return cls.omitted if issubclass(cls, Wire) else ()


def is_struct(cls: Any) -> bool:
    """Whether it is one of our types."""
    return isinstance(cls, type) and issubclass(cls, msgspec.Struct)


# Reading


@cache
def _is_plain(wanted: Any) -> bool:
    """Whether msgspec's own rules for a type are ours. A float may not be a number there."""
    if wanted in (str, bool, int, NoneType, Any) or get_origin(wanted) is Literal:
        return True
    if get_origin(wanted) in (list, dict, Union, UnionType):
        objects = [each for each in get_args(wanted) if is_struct(each) or get_origin(each) is dict]
        return len(objects) < 2 and all(_is_plain(each) for each in get_args(wanted))
    if not is_struct(wanted) or _off_wire(wanted):
        return False
    strict = wanted.__struct_config__.forbid_unknown_fields
    return strict and all(_is_plain(each) for each in _hints(wanted).values())


@cache
def _reader(wanted: Any) -> _Read:
    if wanted in _SIMPLE:
        return _SIMPLE[wanted]
    origin, arguments = get_origin(wanted), get_args(wanted)
    if origin is Literal:
        return lambda value: _literal(value, arguments)
    if origin is list:
        return _list_reader(arguments[0])
    if origin is dict:
        return _dict_reader(arguments[1])
    if origin in (Union, UnionType):
        return _union_reader(arguments)
    return _struct_reader(wanted)


def _exactly(expected: type[Any], noun: str) -> _Read:
    def read(value: Any) -> Any:
        if type(value) is not expected:
            raise _Problem(f"must be {noun}")
        return value

    return read


def _whole_number(value: Any) -> int:
    """As in JSON Schema, 5.0 is a whole number."""
    if type(value) is float and value.is_integer():
        return int(value)
    if type(value) is not int:
        raise _Problem("must be a whole number")
    return value


def _number(value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise _Problem("must be a number")
    return float(value)


_SIMPLE: dict[Any, _Read] = {
    str: _exactly(str, "a string"),
    bool: _exactly(bool, "true or false"),
    NoneType: _exactly(NoneType, "null"),
    int: _whole_number,
    float: _number,
    Any: lambda value: value,
}


def _literal(value: Any, allowed: tuple[Any, ...]) -> Any:
    if type(value) is not str or value not in allowed:
        raise _Problem(f"must be {_one_of(allowed)}")
    return value


def _one_of(allowed: Iterable[Any]) -> str:
    names = [f'"{each}"' for each in allowed]
    return names[0] if len(names) == 1 else f"one of {', '.join(names)}"


def _list_reader(item: Any) -> _Read:
    read = _reader(item)

    def read_list(value: Any) -> list[Any]:
        if type(value) is not list:
            raise _Problem("must be a list")
        return value if item is Any else [_at(f"[{i}]", read, each) for i, each in enumerate(value)]

    return read_list


def _dict_reader(item: Any) -> _Read:
    read = _reader(item)

    def read_dict(value: Any) -> dict[str, Any]:
        members = _object(value)
        if item is Any:
            return members
        return {name: _at(short(name), read, each) for name, each in members.items()}

    return read_dict


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _Problem("must be an object")
    return value


def _at(step: str, read: _Read, value: Any) -> Any:
    try:
        return read(value)
    except _Problem as problem:
        raise problem.below(step) from None


def _struct_reader(cls: type[Any]) -> _Read:
    hints = _hints(cls)
    members = [(name, wire, _reader(hints[name])) for name, wire in wire_names(cls).items()]
    known = {wire for _, wire, _ in members}
    required = {
        field.name
        for field in msgspec.structs.fields(cls)
        if field.default is msgspec.NODEFAULT and field.default_factory is msgspec.NODEFAULT
    }
    given_in = cls.given_in if issubclass(cls, Wire) else None
    further_in = cls.further_in if issubclass(cls, Wire) else None

    def read_struct(value: Any) -> Any:
        further = {name: each for name, each in _object(value).items() if name not in known}
        if further and further_in is None:
            name = min(further)
            raise _Problem(f"is not a known member{perhaps(name, known)}", name)
        built: dict[str, Any] = {}
        if given_in is not None:
            built[given_in] = tuple(value)
        if further_in is not None:
            built[further_in] = further
        for name, wire, read in members:
            if wire in value:
                built[name] = _at(wire, read, value[wire])
            elif name in required:
                raise _Problem("is missing", wire)
        return cls(**built)

    return read_struct


def _union_reader(alternatives: tuple[Any, ...]) -> _Read:
    """By the kind of JSON value: of each there is at most one alternative, but for objects, which
    say which one they are."""
    by_kind: dict[type[Any], _Read] = {}
    tagged = tuple(each for each in alternatives if is_struct(each))
    for each in alternatives:
        if not is_struct(each):
            by_kind.update(dict.fromkeys(_kinds(each), _reader(each)))
    if len(tagged) == 1 and dict not in by_kind:
        by_kind[dict] = _reader(tagged[0])
    elif tagged:
        by_kind[dict] = _tagged_reader(tagged, others=dict in by_kind)
    nouns = _nouns(alternatives)
    several = len(set(alternatives) - {NoneType}) > 1

    def read(value: Any) -> Any:
        found = by_kind.get(type(value))
        if found is None:
            raise _Problem(f"must be {nouns}")
        try:
            return found(value)
        except _Problem:
            if several and type(value) is not dict:  # none of them fits
                raise _Problem(f"must be {nouns}") from None
            raise

    return read


def _kinds(wanted: Any) -> tuple[type[Any], ...]:
    """The Python types of the JSON values that a type takes."""
    if get_origin(wanted) is Literal:
        return (str,)
    if wanted in (int, float):
        return (int, float)
    return (get_origin(wanted) or wanted,)


def _nouns(alternatives: tuple[Any, ...]) -> str:
    """What a value may be; null is an alternative that goes without saying."""
    several = [each for each in alternatives if each is not NoneType]
    if len(several) == 1 and get_origin(several[0]) is Literal:
        return _one_of(get_args(several[0]))
    return " or ".join(dict.fromkeys(_noun(each) for each in several))


def _noun(wanted: Any) -> str:
    if get_origin(wanted) is Literal:
        return " or ".join(f'"{each}"' for each in get_args(wanted))
    nouns = {str: "a string", int: "a whole number", float: "a number", bool: "true or false"}
    kind = get_origin(wanted) or wanted
    return nouns.get(kind, "a list" if kind is list else "an object")


def _tagged_reader(alternatives: tuple[Any, ...], *, others: bool) -> _Read:
    """For types that have a member of one value each, under the same name. With `others`, objects
    of other members than theirs stay as they are."""
    tag = _tag(alternatives[0])
    by_tag = {each.__struct_defaults__[-1]: each for each in alternatives}
    members = {value: set(wire_names(each).values()) for value, each in by_tag.items()}
    which = "" if others else f" that is {_one_of(by_tag)}"

    def read(value: Any) -> Any:
        told = value.get(tag)
        if others and type(told) is str and set(value) != members.get(told):
            return value
        if type(told) is not str or told not in by_tag:
            raise _Problem(f"must be an object with a {tag}{which}")
        return _reader(by_tag[told])(value)

    return read


def _tag(cls: type[Any]) -> str:
    """By convention the last member: it has one value, which is its default."""
    return str(cls.__struct_fields__[-1])


# Writing


@cache
def _writer(cls: type[Any]) -> _Write:
    if not is_struct(cls):
        return lambda value: value
    omitted = tuple(wire_names(cls)[name] for name in _omitted(cls))
    if all(_is_flat(each) for each in _hints(cls).values()) and not _off_wire(cls):
        return _flat_writer(omitted)
    return _struct_writer(cls, omitted)


@cache
def _is_flat(wanted: Any) -> bool:
    """Whether msgspec writes a member of this type as we do. What is somebody else's JSON is not
    copied, so not that."""
    if wanted in (str, bool, int, float, NoneType) or get_origin(wanted) is Literal:
        return True
    if get_origin(wanted) in (list, dict, Union, UnionType):
        return all(_is_flat(each) for each in get_args(wanted))
    if not is_struct(wanted) or _off_wire(wanted) or _omitted(wanted):
        return False
    return all(_is_flat(each) for each in _hints(wanted).values())


def _flat_writer(omitted: tuple[str, ...]) -> _Write:
    if not omitted:
        return msgspec.to_builtins

    def write(value: Any) -> Any:
        plain = msgspec.to_builtins(value)
        for name in omitted:
            if plain[name] is None:
                del plain[name]
        return plain

    return write


def _struct_writer(cls: type[Any], omitted: tuple[str, ...]) -> _Write:
    hints = _hints(cls)
    members = [(name, wire, _member_writer(hints[name])) for name, wire in wire_names(cls).items()]
    further_in = cls.further_in if issubclass(cls, Wire) else None

    def write(value: Any) -> Any:
        plain = {} if further_in is None else dict(getattr(value, further_in))
        for name, wire, write_member in members:
            member = getattr(value, name)
            if member is not None or wire not in omitted:
                plain[wire] = member if write_member is None else write_member(member)
        return plain

    return write


def _member_writer(wanted: Any) -> _Write | None:
    """None for what stays as it is."""
    origin, arguments = get_origin(wanted), get_args(wanted)
    if origin is list:
        write = _member_writer(arguments[0])
        if write is None:
            return None
        return lambda value: list(map(write, value))
    if origin is dict:
        write_value = _member_writer(arguments[1])
        if write_value is None:
            return None
        return lambda value: {name: write_value(each) for name, each in value.items()}
    if origin in (Union, UnionType):
        return _union_writer(arguments)
    return _writer(wanted) if is_struct(wanted) else None


def _union_writer(alternatives: tuple[Any, ...]) -> _Write | None:
    """By the type of the value; of lists and objects of ours there is at most one alternative."""
    writers = {get_origin(each) or each: _member_writer(each) for each in alternatives}
    if not any(writers.values()):
        return None

    def write(value: Any) -> Any:
        found = writers.get(type(value))
        return value if found is None else found(value)

    return write
