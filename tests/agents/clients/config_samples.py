"""Configuration files as the clients write them: one with comments and other servers, one that is broken."""

import tomllib
from pathlib import Path
from typing import Any

import yaml

from palaver.agents.clients import config_format
from palaver.agents.clients.client_table import Client

RICH = {
    "claude-code": """\
{
  "numStartups": 184,
  "installMethod": "native",
  "autoUpdates": false,
  "tipsHistory": {"new-user-warmup": 3, "plan-mode-for-complex-tasks": 170},
  "projects": {
    "/home/zoë/my app": {
      "allowedTools": [],
      "mcpServers": {"palaver": {"command": "of this project only"}},
      "hasTrustDialogAccepted": true
    }
  },
  "mcpServers": {
    "github": {
      "type": "http",
      "url": "https://api.githubcopilot.com/mcp/"
    }
  },
  "userID": "5f0c"
}
""",
    "claude": """\
{
  "globalShortcut": "Ctrl+Space",
  "mcpServers": {
    "filesystem": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "/Users/zoë/Documents"]
    }
  }
}
""",
    "cursor": """\
{
  // Servers of all projects
  "mcpServers": {
    "sqlite": { "command": "uvx", "args": ["mcp-server-sqlite", "--db-path", "~/a b.db"] }, // local
    "linear": { "url": "https://mcp.linear.app/sse" }
  }
}
""",
    "codex": """\
# Codex
model = "gpt-5-codex"   # default
approval_policy = "on-request"
notify = ["notify-send", "Codex"]

[tui]
theme = "dark"

[mcp_servers.context7]
command = "npx"
args = ["-y", "@upstash/context7-mcp"]
env = { "KEY" = "value" }

[projects."/home/zoë/my app"]
trust_level = "trusted"
""",
    "gemini": """\
{
  "theme": "GitHub",
  "selectedAuthType": "oauth-personal",
  /* Servers
     of all projects */
  "mcpServers": {
    "git": {
      "command": "uvx",
      "args": ["mcp-server-git"],
      "timeout": 30000,
      "trust": false
    }
  }
}
""",
    "copilot": """\
{
  "mcpServers": {
    "playwright": {
      "tools": ["*"],
      "type": "local",
      "command": "npx",
      "args": ["@playwright/mcp@latest"]
    }
  }
}
""",
    "kimi": """\
{
  "mcpServers": {
    "context7": {
      "url": "https://mcp.context7.com/mcp",
      "headers": {"CONTEXT7_API_KEY": "YOUR_API_KEY"}
    }
  }
}""",
    "kimi-code": '{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"], "enabled": false}}}\n',
    "opencode": """\
{
\t"$schema": "https://opencode.ai/config.json",
\t"model": "anthropic/claude-sonnet-4-5",
\t// Tools
\t"mcp": {
\t\t"playwright": {
\t\t\t"type": "local",
\t\t\t"command": ["npx", "@playwright/mcp@latest"],
\t\t\t"enabled": true,
\t\t},
\t},
}
""",
    "vscode": """\
{
\t"inputs": [
\t\t{ "type": "promptString", "id": "key", "description": "API key", "password": true }
\t],
\t"servers": {
\t\t"perplexity": { // search
\t\t\t"type": "stdio",
\t\t\t"command": "npx",
\t\t\t"args": ["-y", "server-perplexity-ask"],
\t\t\t"env": { "PERPLEXITY_API_KEY": "${input:key}" }
\t\t}
\t}
}
""",
    "zed": """\
// Zed settings
//
// Shared by all my machines.
{
  "ui_font_size": 16, // "buffer_font_size": 14,
  "theme": {
    "mode": "system",
    "dark": "One Dark",
  },
  "languages": { "Python": { "tab_size": 4 } },
  /* the end */
}
""",
    "windsurf": """\
{
    "mcpServers": {
        "fetch": {
            "serverUrl": "https://x/sse"
        }
    }
}
""".replace("\n", "\r\n"),
    "goose": """\
# Goose
GOOSE_PROVIDER: anthropic
GOOSE_MODEL: "claude-4.5-sonnet"   # quoted

extensions:
  developer:
    bundled: true
    enabled: true
    name: developer
    timeout: 300
    type: builtin
  fetch:
    args:
    - mcp-server-fetch
    cmd: uvx
    enabled: true
    env_keys: []
    envs: {}
    name: fetch
    type: stdio
  # more extensions here

GOOSE_SEARCH_PATHS:
  - "/home/zoë/my tools"
notes: |
  two
  lines

""",
    "kiro": """\
{
  "mcpServers": {
    "aws-docs": {
      "command": "uvx",
      "args": ["awslabs.aws-documentation-mcp-server@latest"],
      "env": {"FASTMCP_LOG_LEVEL": "ERROR"},
      "disabled": false,
      "autoApprove": []
    }
  }
}
""",
    "droid": """\
{
  "mcpServers": {
    "linear": {"type": "http", "url": "https://mcp.linear.app/mcp", "disabled": false},
    "airtable": {"type": "stdio", "command": "npx", "args": ["-y", "airtable-mcp-server"], "disabled": true}
  }
}
""",
}

BROKEN = {
    "claude-code": '{"numStartups": 184, "mcpServers": {',
    "claude": '{"mcpServers": {"a": {"command": "x"}}',
    "cursor": '{"mcpServers": {"a": }}\n',
    "codex": 'model = "gpt-5\n[mcp_servers.x]\n',
    "gemini": "{'theme': 'GitHub'}",
    "copilot": '{"mcpServers": {"playwright": {"command": "npx",,}}}',
    "kimi": '{"mcpServers": []}',
    "kimi-code": '{"mcpServers": null}',
    "opencode": '{"mcp": {} /* open }',
    "vscode": '["servers"]',
    "zed": '// Zed\n{"theme": "One" "context_servers": {}}',
    "windsurf": '{"mcpServers": {"palaver": "no table"}}',
    "kiro": "<<<<<<< HEAD\n{}\n=======\n{}\n>>>>>>> other\n",
    "droid": '{"mcpServers": {"x": NaN}}',
}


def write(path: Path, content: str | bytes) -> Path:
    """Write a configuration file, with its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def values(client: Client) -> dict[str, Any]:
    """Return the values of the client's file, as the parser of its format reads them."""
    text, found = client.path.read_text("utf-8"), dict[str, Any]()
    match client.format:
        case "toml":
            found = tomllib.loads(text)
        case "yaml":
            found = yaml.safe_load(text)
        case _:
            found = config_format.read(text)
    return found


def entry(client: Client) -> dict[str, Any]:
    """Return the entry of Palaver's server."""
    found: dict[str, Any] = values(client)[client.section]["palaver"]
    return found


def launch(client: Client) -> tuple[list[str], dict[str, str]]:
    """Return the command line and the environment of the entry."""
    found = entry(client)
    command: Any = found[client.shape.command]
    words: list[str] = command if client.shape.joined else [command, *found["args"]]
    env: dict[str, str] = found.get(client.shape.env, {})
    return words, env
