"""Upstreams in the configuration: whether each starts, and what is known of its tools."""

from pinfold.app import Gateway
from pinfold.config import Settings
from pinfold.doctor.finding import Finding, count, finding
from pinfold_protocol.errors import RpcError, short
from pinfold_protocol.session import UpstreamOptions

_MOST = 20
"""How many tools are named; the others are counted."""


def upstreams(settings: Settings, gateway: Gateway) -> list[Finding]:
    """Each is started, asked for its tools, and ended; nothing runs where none is configured."""
    configured = settings.connection.upstreams or {}
    try:
        return [
            each
            for name, options in configured.items()
            for each in _upstream(name, options, gateway)
        ]
    finally:
        gateway.close()


def _upstream(name: str, options: UpstreamOptions, gateway: Gateway) -> list[Finding]:
    about = f"upstream {short(name)}"
    try:
        gateway.upstreams.start(name, gateway)
    except RpcError as error:
        problem = (error.data or {}).get("problem", error.message)
        return [finding("upstream-fails", about, str(problem))]
    catalog = gateway.upstreams.named(name).catalog
    found = []
    if unknown := catalog.unmapped:
        title = f"Nothing is known of {count(len(unknown), 'tool')}: {_named(unknown)}"
        found.append(finding("upstream-unmapped", about, title))
    if absent := [tool for tool in options.tools or {} if tool not in catalog.listed]:
        title = f"It has no {'tool' if len(absent) == 1 else 'tools'} called {_named(absent)}"
        found.append(finding("upstream-no-such-tool", about, title))
    tools = count(len(catalog.listed), "tool")
    return found or [finding("upstream", about, f"It starts, and has {tools}, all known")]


def _named(tools: list[str]) -> str:
    more = len(tools) - _MOST
    shown = ", ".join(map(short, tools[:_MOST]))
    return f"{shown}, and {more:,} more" if more > 0 else shown
