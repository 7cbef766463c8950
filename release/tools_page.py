"""Write docs/tools.md, which lists the tools of all toolsets: `python release/tools_page.py`."""

from pathlib import Path

import orjson

from palaver.agents.toolset import TOOLSETS, Effect, Tool, Toolset, find_toolset
from palaver.core.tokens import count

PAGE = Path(__file__).parents[1] / "docs" / "tools.md"
_EFFECTS = {
    Effect.READS: "reads",
    Effect.RECORDS: "reads",
    Effect.WRITES: "writes",
    Effect.DESTROYS: "deletes",
}


def tools_page() -> str:
    """Return the Markdown of docs/tools.md."""
    toolsets = [find_toolset(name) for name in TOOLSETS]
    total = sum(len(each.tools) for each in toolsets)
    head = [
        "# Tools",
        "",
        f"The {len(toolsets)} toolsets have {total} tools. Every session pays for the tokens of the served ones.",
        "[mcp.md](mcp.md) describes the toolsets. `release/tools_page.py` generates this page.",
        "",
        "`Tokens` counts the name, the description and the parameters. `Output` counts the output schema, which most",
        "clients do not give to the model.",
    ]
    return "\n".join([*head, *(row for each in toolsets for row in _section(each))]) + "\n"


def _section(toolset: Toolset) -> list[str]:
    """Return the Markdown lines of a toolset. Its number of tokens includes the server instructions."""
    title = f"## {toolset.name.capitalize()}: {len(toolset.tools)} tools, {toolset.tokens:,} tokens"
    title += f", output schemas {toolset.output_tokens:,}" if toolset.output_tokens else ""
    return [
        "",
        title,
        "",
        "| Tool | Effect | Tokens | Output | Description |",
        "| --- | --- | ---: | ---: | --- |",
        *map(_row, toolset.tools),
    ]


def _row(tool: Tool) -> str:
    tokens = count(orjson.dumps(tool.listed).decode())
    output = f"{count(orjson.dumps(tool.output_schema).decode()):,}" if tool.output_schema else ""
    summary = " ".join(tool.description.partition("\n\n")[0].split()).replace("|", "\\|")
    return f"| `{tool.name}` | {_EFFECTS[tool.effect]} | {tokens:,} | {output} | {summary} |"


if __name__ == "__main__":
    PAGE.write_text(tools_page(), "utf-8")
