"""One cattrs converter for exactly these types, strict where a typo would fail open.

Nothing is coerced: a number is no string, `true` is no number, an unknown member is an error.
"""

import math
import sys
from collections.abc import Callable
from typing import Any, Literal, TypeVar, get_origin

import attrs
from cattrs import Converter
from cattrs.errors import (
    BaseValidationError,
    ClassValidationError,
    ForbiddenExtraKeysError,
    IterableValidationError,
)
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from pinfold_protocol.decision import RuleSource, Source
from pinfold_protocol.errors import invalid_params, short
from pinfold_protocol.session import ScopePatch
from pinfold_protocol.tools import AnyContent, Content, ImageContent, TextContent, ToolResult

T = TypeVar("T")

_NAMES = {str: "a string", bool: "true or false"}


class _Problem(Exception):
    """What is wrong with a value, in words for whoever sent it."""


def camel(name: str) -> str:
    """`session_id` → `sessionId`."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def wire_name(cls: type[Any], field: "attrs.Attribute[Any]") -> str:
    """The name that a member has on the wire."""
    if "wire_name" in field.metadata:
        return str(field.metadata["wire_name"])
    return field.name if getattr(cls, "snake_case_on_wire", False) else camel(field.name)


def _exactly(expected: type[Any]) -> Callable[[Any, Any], Any]:
    def structure(value: Any, _: Any) -> Any:
        if type(value) is not expected:
            raise _Problem(f"must be {_NAMES[expected]}")
        return value

    return structure


def _whole_number(value: Any, _: Any) -> int:
    """As in JSON Schema, 5.0 is a whole number."""
    if type(value) is float and value.is_integer():
        return int(value)
    if type(value) is not int:
        raise _Problem("must be a whole number")
    return value


def _number(value: Any, _: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise _Problem("must be a number")
    return float(value)


def _object(value: Any, _: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _Problem("must be an object")
    return value


def _token(value: Any, _: Any) -> int | str | None:
    if value is not None and type(value) not in (int, str):
        raise _Problem("must be a string or a whole number")
    return value  # type: ignore[no-any-return]


def _literal(value: Any, literal: Any) -> Any:
    if type(value) is not str or value not in literal.__args__:
        raise _Problem("must be one of " + ", ".join(f'"{each}"' for each in literal.__args__))
    return value


def _structure_class(cls: type[Any]) -> Callable[[Any, Any], Any]:
    fields = attrs.fields(cls)
    names = {f.name: _override(cls, f) for f in fields}
    build = make_dict_structure_fn(cls, converter, _cattrs_forbid_extra_keys=True, **names)
    unsupported = [wire_name(cls, f) for f in fields if f.metadata.get("unsupported")]

    def structure(value: Any, _: Any) -> Any:
        if not isinstance(value, dict):
            raise _Problem("must be an object")
        for name in unsupported:
            if value.get(name) is not None:
                raise _Unsupported(name)
        return build(value, cls)

    return structure


class _Unsupported(_Problem):
    def __init__(self, member: str) -> None:
        super().__init__("is not supported by this version of pinfold")
        self.member = member


def _structure_patch(cls: type[Any]) -> Callable[[Any, Any], ScopePatch]:
    build = _structure_class(cls)

    def structure(value: Any, _: Any) -> ScopePatch:
        patch: ScopePatch = build(value, cls)
        return attrs.evolve(patch, given=tuple(value))

    return structure


def _unstructure_class(cls: type[Any]) -> Callable[[Any], dict[str, Any]]:
    fields = attrs.fields(cls)
    names = {f.name: _override(cls, f) for f in fields}
    return make_dict_unstructure_fn(cls, converter, **names)


def _override(cls: type[Any], field: "attrs.Attribute[Any]") -> Any:
    """By the field's metadata: `wire: False` is no member, `omit_null` is left out where it is
    null, `raw` is somebody else's JSON: a list where the type says so, and not looked into."""
    raw = field.metadata.get("raw")
    return override(
        rename=wire_name(cls, field),
        omit=not field.metadata.get("wire", True),
        omit_if_default=bool(field.metadata.get("omit_null")),
        struct_hook=(_raw_list if _is_list(field.type) else _raw) if raw else None,
        unstruct_hook=_same if raw else None,
    )


def _raw(value: Any, _: Any) -> Any:
    return value


def _raw_list(value: Any, _: Any) -> list[Any]:
    if type(value) is not list:
        raise _Problem("must be a list")
    return value


def _same(value: Any) -> Any:
    return value


def _structure_list(cls: Any) -> Callable[[Any, Any], Any]:
    (item,) = cls.__args__

    def structure(value: Any, _: Any) -> list[Any]:
        if type(value) is not list:
            raise _Problem("must be a list")
        built = []
        for index, each in enumerate(value):
            try:
                built.append(converter.structure(each, item))
            except (BaseValidationError, _Problem) as error:
                raise _At(f"[{index}]", error) from error
        return built

    return structure


def _structure_dict(cls: Any) -> Callable[[Any, Any], Any]:
    _, item = cls.__args__
    if item is Any:
        return _object

    def structure(value: Any, _: Any) -> dict[str, Any]:
        built = {}
        for name, each in _object(value, None).items():
            try:
                built[name] = converter.structure(each, item)
            except (BaseValidationError, _Problem) as error:
                raise _At(short(name), error) from error
        return built

    return structure


def _unstructure_dict(cls: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    item = cls.__args__[1]
    if not attrs.has(item):
        return _same
    hook = converter.get_unstructure_hook(item)
    return lambda value: {name: hook(each) for name, each in value.items()}


class _At(_Problem):
    """A problem with one item of a list or of an object."""

    def __init__(self, step: str, inner: BaseException) -> None:
        super().__init__(str(inner))
        self.step = step
        self.inner = inner


def _is_literal(cls: Any) -> bool:
    return get_origin(cls) is Literal


def _is_dict(cls: Any) -> bool:
    return get_origin(cls) is dict


def _is_list(cls: Any) -> bool:
    return get_origin(cls) is list


def _is_token(cls: Any) -> bool:
    return bool(cls == int | str | None)


def _content(value: Any, _: Any) -> Content:
    kind = value.get("type") if isinstance(value, dict) else None
    if kind not in ("text", "image"):
        raise _Problem('must be an item of type "text" or "image"')
    if kind == "text":
        return converter.structure(value, TextContent)
    return converter.structure(value, ImageContent)


_OURS = {"text": {"type", "text"}, "image": {"type", "data", "mimeType"}}


def _any_content(value: Any, _: Any) -> AnyContent:
    """An item of ours, or an upstream's as it stands."""
    kind = value.get("type") if isinstance(value, dict) else None
    if type(kind) is not str:
        raise _Problem("must be an item with a type")
    if set(value) != _OURS.get(kind):
        return value  # type: ignore[no-any-return]
    return _content(value, None)


def _structure_result(cls: type[Any]) -> Callable[[Any, Any], ToolResult]:
    """Leniently: further members of a result are an upstream's."""
    build = _structure_class(cls)
    known = {wire_name(cls, f) for f in attrs.fields(cls) if f.metadata.get("wire", True)}

    def structure(value: Any, _: Any) -> ToolResult:
        if not isinstance(value, dict):
            raise _Problem("must be an object")
        ours = {name: each for name, each in value.items() if name in known}
        more = {name: each for name, each in value.items() if name not in known}
        result: ToolResult = build(ours, cls)
        return attrs.evolve(result, more=more) if more else result

    return structure


def _unstructure_result(cls: type[Any]) -> Callable[[ToolResult], dict[str, Any]]:
    dump = _unstructure_class(cls)
    return lambda result: {**result.more, **dump(result)} if result.more else dump(result)


def _is_content(cls: Any) -> bool:
    return bool(cls in (Content, AnyContent))


def _trigger(value: Any, _: Any) -> Any:
    from pinfold_protocol.compaction import TRIGGERS

    kind = value.get("kind") if isinstance(value, dict) else None
    if type(kind) is not str or kind not in TRIGGERS:
        kinds = ", ".join(f'"{each}"' for each in TRIGGERS)
        raise _Problem(f"must be an object whose kind is one of {kinds}")
    return converter.structure(value, TRIGGERS[kind])


def _names(value: Any, _: Any) -> Any:
    if value is None or value == "*":
        return value
    if type(value) is not list or not all(type(each) is str for each in value):
        raise _Problem('must be a list of strings, or "*"')
    return value


_PLAIN_SOURCES = ("profile", "override", "turn")


def _source(value: Any, _: Any) -> Any:
    if isinstance(value, dict):
        return converter.structure(value, RuleSource)
    if value is not None and value not in _PLAIN_SOURCES:
        raise _Problem("must be a source of a decision")
    return value


def _one_of(wanted: Any) -> Callable[[Any], bool]:
    return lambda cls: bool(cls == wanted)


def _of_compaction(name: str, *, nullable: bool = False) -> Callable[[Any], bool]:
    """A type of that module, which is not imported for this: few hosts need it."""

    def matches(cls: Any) -> bool:
        module = sys.modules.get("pinfold_protocol.compaction")
        wanted = getattr(module, name, None)  # half of it may be there
        return wanted is not None and bool(cls == (wanted | None if nullable else wanted))

    return matches


converter = Converter(forbid_extra_keys=True)
for _type in (str, bool):
    converter.register_structure_hook(_type, _exactly(_type))
converter.register_structure_hook(int, _whole_number)
converter.register_structure_hook(float, _number)
converter.register_structure_hook_factory(_is_dict, _structure_dict)
converter.register_structure_hook_func(_of_compaction("Trigger"), _trigger)
converter.register_structure_hook_func(_of_compaction("Names", nullable=True), _names)
converter.register_structure_hook_func(_one_of(Source | None), _source)
converter.register_structure_hook_func(_is_token, _token)
converter.register_structure_hook_func(_one_of(Content), _content)
converter.register_structure_hook_func(_one_of(AnyContent), _any_content)
converter.register_structure_hook_func(_is_literal, _literal)
converter.register_structure_hook_factory(_is_list, _structure_list)
converter.register_structure_hook_factory(attrs.has, _structure_class)
converter.register_structure_hook_factory(lambda cls: cls is ScopePatch, _structure_patch)
converter.register_structure_hook_factory(lambda cls: cls is ToolResult, _structure_result)
converter.register_unstructure_hook_factory(attrs.has, _unstructure_class)
converter.register_unstructure_hook_factory(lambda cls: cls is ToolResult, _unstructure_result)
converter.register_unstructure_hook_func(
    _is_content,
    lambda item: item if type(item) is dict else converter.get_unstructure_hook(type(item))(item),
)
converter.register_unstructure_hook_func(
    _of_compaction("Trigger"),
    lambda trigger: converter.get_unstructure_hook(type(trigger))(trigger),
)
converter.register_unstructure_hook_func(
    _one_of(Source | None),
    lambda value: unstructure(value) if isinstance(value, RuleSource) else value,
)
converter.register_unstructure_hook_factory(_is_dict, _unstructure_dict)


def structure(value: Any, cls: type[T], at: str = "") -> T:
    """Plain JSON → an instance of `cls`.

    Raises RpcError (-32602) that names the first member that is wrong, below `at`.
    """
    try:
        built: T = converter.get_structure_hook(cls)(value, cls)
        return built
    except (BaseValidationError, _Problem) as error:
        path, problem = describe(error, bool(getattr(cls, "snake_case_on_wire", False)))
        raise invalid_params(_join(at, path), problem) from None


def unstructure(value: Any) -> Any:
    """An instance of one of our types → plain JSON."""
    return converter.get_unstructure_hook(type(value))(value)


def describe(error: BaseException, snake: bool = False) -> tuple[str, str]:
    """Where (dotted, in wire names; empty for the whole) and what is wrong first."""
    if isinstance(error, _At):
        path, problem = describe(error.inner, snake)
        return _join(error.step, path), problem
    if isinstance(error, _Unsupported):
        return error.member, str(error)
    if isinstance(error, ForbiddenExtraKeysError):
        return sorted(map(str, error.extra_fields))[0], "is not a known member"
    if isinstance(error, ClassValidationError | IterableValidationError):
        return _describe_group(error, snake)
    if isinstance(error, KeyError):
        return str(error.args[0]), "is missing"
    return "", str(error)


def _describe_group(
    error: ClassValidationError | IterableValidationError, snake: bool
) -> tuple[str, str]:
    noted, plain = error.group_exceptions()
    for inner in plain:
        if isinstance(inner, ForbiddenExtraKeysError):
            return describe(inner, snake)
    if not noted:
        return describe(plain[0], snake)
    inner, note = noted[0]
    if isinstance(inner, KeyError):
        return describe(inner, snake)
    path, problem = describe(inner, snake)
    name = str(getattr(note, "name", ""))
    return _join(name if snake else camel(name), path), problem


def _join(outer: str, inner: str) -> str:
    if not outer or not inner or inner.startswith("["):
        return outer + inner
    return f"{outer}.{inner}"
