"""What tools a session in front of an upstream is offered."""

from typing import Any

from pinfold.tools.base import ToolType
from pinfold.tools.registry import TOOLS
from pinfold.upstream.mapping import Catalog
from pinfold_protocol.convert import unstructure
from pinfold_protocol.tools import Annotations, Tool


def listed(catalog: Catalog, *, scoped: bool) -> list[dict[str, Any]]:
    """The tools of a session in front of an upstream: ours as far as it serves them, then its own
    as it lists them."""
    ours = [unstructure(_served(TOOLS[name], catalog)) for name in catalog.served]
    return [*ours, *(catalog.listed[name] for name in catalog.own(scoped=scoped))]


def _served(tool: ToolType, catalog: Catalog) -> Tool:
    """A tool of ours with those of its arguments that the upstream has words for."""
    words = catalog.words(tool.name)
    schema = tool.input_schema
    schema["properties"] = {k: v for k, v in tool.properties.items() if k in words}
    return Tool(tool.name, tool.description, schema, tool.annotations)


def as_tool(raw: dict[str, Any]) -> Tool:
    """A tool as an upstream lists it, in our shape; hints that it does not give are MCP's."""
    hints = raw.get("annotations")
    hints = hints if isinstance(hints, dict) else {}

    def hint(name: str, default: bool) -> bool:
        value = hints.get(name)
        return value if isinstance(value, bool) else default

    title, described, schema = raw.get("title"), raw.get("description"), raw.get("outputSchema")
    return Tool(
        raw["name"],
        described if isinstance(described, str) else "",
        raw["inputSchema"],
        Annotations(
            hint("readOnlyHint", False),
            hint("destructiveHint", True),
            hint("idempotentHint", False),
            hint("openWorldHint", True),
        ),
        title=title if isinstance(title, str) else None,
        output_schema=schema if isinstance(schema, dict) else None,
    )
