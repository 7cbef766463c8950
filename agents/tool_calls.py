"""Tool calls over MCP: list of tools, calls, confirmation of deletions, progress, and contexts of toolsets.

Before a tool deletes something, the user confirms it through elicitation (a question of the server that the client
shows). Since protocol version 2026-07-28, a server cannot send requests. It returns the question as the result of the
call, and the client repeats the call with the answer. The key of the question is its digest, so an answer is valid
only for the same question. If the items to delete have changed in the meantime, the user is asked again.

A tool reports its progress from its thread, and the server sends it to the client. Contexts open memories and
documents on first use. The toolsets rag and fabric show UUIDs of memories instead of IDs such as `mem_7`, which they
also accept.
"""

import logging
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import cached_property, partial
from hashlib import sha256
from typing import Any, Final, TypeVar
from uuid import UUID

import anyio
import anyio.to_thread
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ContentBlock,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp_types import Tool as ListedTool
from mcp_types.version import is_version_at_least

from ..archiver.store.session_table import plain_namespace
from ..core import ids
from ..core.document import DocumentStats, IndexedDirectory
from ..core.errors import ChangedMeanwhile, InvalidInput, MemoryNotFound, PalaverError
from ..core.memory import StoredMemory
from ..core.runtime import Reporter, silent
from ..observe.background.index_worker import BackgroundIndexer
from ..observe.memory import MemoryCore
from ..search.document_library import DocumentLibrary
from ..templates.quote import brief
from .toolset import Effect, ServedTools, ServerConfig, Tool, ToolReply, Toolset, open_component

REPORTER: Final[ContextVar[Reporter]] = ContextVar("REPORTER", default=silent)
"""Function to which a tool reports the progress of the current call. Outside a server, reports are ignored."""


class CallProgress:
    """Latest progress message of a call, such as `Reading: 12 of 340`. An instance is a `Reporter`."""

    def __init__(self) -> None:
        self.message = ""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Store the name of the stage, its number of finished steps and its total number of steps."""
        self.message = f"{stage}: {done:,} of {total:,}"


_LISTED: Final = 10
"""Maximum number of items that a question lists."""
_TOKENS: Final = 40
"""Maximum tokens of an item in a question."""


class DeletionDeclined(PalaverError):
    """Error: the user declined a deletion. The operation changed nothing."""

    hint = "Do not repeat the call unless the user asks for it."

    def __init__(self) -> None:
        super().__init__("The user declined. Nothing was deleted")


def delete_question(action: str, items: Sequence[str], note: str = "") -> str:
    """Return a question such as `Forget 3 memories?` that lists the items. Without items, return an empty text."""
    if not items:
        return ""
    rows = [f"- {brief(each, _TOKENS)}" for each in items[:_LISTED]]
    more = [f"- and {len(items) - _LISTED:,} more"] if len(items) > _LISTED else []
    return "\n".join([f"{action}?", *rows, *more, *([note] if note else [])])


def forget_question(memories: Sequence[StoredMemory], note: str = "You can undo it.") -> str:
    """Return a question that lists the memories to forget."""
    items = [f"{each.id} [{each.memory.namespace}] {each.memory.title or each.memory.content}" for each in memories]
    return delete_question("Forget this memory" if len(items) == 1 else f"Forget {len(items):,} memories", items, note)


_REPEATS_CALLS_SINCE: Final = "2026-07-28"
"""First protocol version in which the client repeats a call with the answers."""
_SCHEMA: Final[dict[str, Any]] = {"type": "object", "properties": {}}
"""Schema of the form without fields: the user only accepts or declines."""


def can_ask(context: ServerRequestContext[Any, Any]) -> bool:
    """Return whether the client can show a question as a form.

    A client that declares elicitation without a mode supports forms.
    """
    capabilities = context.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


async def ask(
    context: ServerRequestContext[Any, Any], params: CallToolRequestParams, question: str
) -> InputRequiredResult | None:
    """Ask the user to confirm a deletion.

    Return the result that makes the client show the question, or None if the user has accepted.

    Raises:
        DeletionDeclined: The user declined, or closed the question.
    """
    form = ElicitRequestFormParams(message=question, requested_schema=_SCHEMA)
    if is_version_at_least(context.protocol_version, _REPEATS_CALLS_SINCE):
        key = f"confirm-{sha256((params.name + question).encode()).hexdigest()[:16]}"
        answer = (params.input_responses or {}).get(key)
        if not isinstance(answer, ElicitResult):
            return InputRequiredResult(input_requests={key: ElicitRequest(params=form)})
    else:
        answer = await context.session.elicit_form(question, _SCHEMA, context.request_id)
    if answer.action != "accept":
        raise DeletionDeclined
    return None


def check_unchanged(before: str, after: str) -> None:
    """Raise `ChangedMeanwhile` if the question that the user answered differs from the current question."""
    if before != after:
        raise ChangedMeanwhile


STRUCTURED_SINCE: Final = "2025-06-18"
"""First protocol version with structured content."""
_PROGRESS_SECONDS: Final = 1.0
"""Seconds between two progress notifications of a call."""

Context = ServerRequestContext[Any, Any]
Result = TypeVar("Result")


class ToolContexts:
    """Contexts of the toolsets. Each is opened on first use. Only one thread at a time uses them."""

    def __init__(self, config: ServerConfig) -> None:
        self._config = config
        self._opened: dict[str, Any] = {}
        self._one_at_a_time = anyio.CapacityLimiter(1)

    async def run(self, toolset: Toolset, function: Callable[[Any], Result]) -> Result:
        """Call a function with the toolset's context in a worker thread, and return the result."""
        return await anyio.to_thread.run_sync(partial(self._run, toolset, function), limiter=self._one_at_a_time)

    def _run(self, toolset: Toolset, function: Callable[[Any], Result]) -> Result:
        if toolset.name not in self._opened:
            self._opened[toolset.name] = toolset.open(self._config)
        return function(self._opened[toolset.name])


class ToolCalls:
    """Handlers of the requests that list and call tools."""

    def __init__(self, served: ServedTools, config: ServerConfig, contexts: ToolContexts) -> None:
        self._served, self._config, self._contexts = served, config, contexts

    async def list_tools(self, _context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        """Return all tools, in the order of their toolsets."""
        refuse_cursor(params)
        return ListToolsResult(tools=self._tools)

    @cached_property
    def _tools(self) -> list[ListedTool]:
        """All tools as clients list them. Deriving the schemas of 28 tools takes 70 ms, so it is done once."""
        online, read_only = self._config.make_judge is not None, self._config.home.read_only
        return [
            _listed(name, tool, online=online, read_only=read_only) for name, (_, tool) in self._served.tools.items()
        ]

    async def call_tool(self, context: Context, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        """Return the reply of a tool, or the question that the user has to answer first."""
        if params.name not in self._served.tools:
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name}. Tools: {', '.join(self._served.tools)}.")
        toolset, tool = self._served.tools[params.name]
        try:
            question = await self._confirmed(context, params, toolset, tool)
        except PalaverError as error:
            return _result(toolset.to_error_reply(error), context.protocol_version, failed=True)
        return question or await self._reply(context, params, toolset, tool)

    async def _confirmed(
        self, context: Context, params: CallToolRequestParams, toolset: Toolset, tool: Tool
    ) -> InputRequiredResult | None:
        """Return the question to the user, or None if the user accepted, need not be asked or cannot be asked."""
        if tool.question is None or self._config.home.read_only or not can_ask(context):
            return None
        arguments = params.arguments or {}
        prepare = partial(self._contexts.run, toolset, lambda opened: tool.question_for(opened, arguments))
        question = await prepare()
        if not question:
            return None
        asked = await ask(context, params, question)
        if asked is None:
            check_unchanged(question, await prepare())
        return asked

    async def _reply(
        self, context: Context, params: CallToolRequestParams, toolset: Toolset, tool: Tool
    ) -> CallToolResult:
        """Run a tool, and report its progress every second to a client that asked for it."""
        progress, result = CallProgress(), None
        token = REPORTER.set(progress)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(_report, context, progress)
                result = await self._run(context, params.arguments or {}, toolset, tool)
                group.cancel_scope.cancel()
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None  # Only the tool can fail, because reporting suppresses its failures.
        finally:
            REPORTER.reset(token)
        assert result is not None
        return result

    async def _run(
        self, context: Context, arguments: dict[str, object], toolset: Toolset, tool: Tool
    ) -> CallToolResult:
        read_only = self._config.home.read_only
        try:
            reply = await self._contexts.run(toolset, lambda opened: tool.call(opened, arguments, read_only=read_only))
        except PalaverError as error:
            return _result(toolset.to_error_reply(error), context.protocol_version, failed=True)
        return _result(reply, context.protocol_version)


def refuse_cursor(params: PaginatedRequestParams | None) -> None:
    """Raise `MCPError` for a request with a page cursor, because every list is a single page."""
    if params is not None and params.cursor is not None:
        raise MCPError(INVALID_PARAMS, "Invalid cursor. The list is a single page: leave the cursor out.")


async def _report(context: Context, progress: CallProgress) -> None:
    """Send a progress notification every second: the seconds since the start of the call, and its latest stage.

    Nothing is sent if the request contained no progress token.
    """
    start = anyio.current_time()
    while True:
        await anyio.sleep(_PROGRESS_SECONDS)
        try:
            await context.session.report_progress(
                round(anyio.current_time() - start, 1), message=progress.message or None
            )
        except Exception:  # Keep the call's reply: the tool may have deleted something.
            logging.getLogger(__name__).debug("the progress of a call cannot be reported", exc_info=True)
            return


def _listed(name: str, tool: Tool, *, online: bool, read_only: bool) -> ListedTool:
    """Return a tool as clients list it. `online` is true if a language model is configured to judge memories."""
    reads = tool.effect is Effect.READS or (read_only and tool.effect is Effect.RECORDS)
    destroys = tool.effect is Effect.DESTROYS
    return ListedTool(
        name=name,
        description=tool.description,
        input_schema=tool.schema,
        output_schema=tool.output_schema,
        annotations=ToolAnnotations(
            read_only_hint=reads,
            destructive_hint=None if reads else destroys,
            open_world_hint=online and tool.judges,
        ),
    )


def _result(reply: ToolReply, protocol: str, *, failed: bool = False) -> CallToolResult:
    """Return the reply as text, and also as structured content if it is JSON and the protocol version supports this.

    A failed call has no structured content. The client of the TypeScript SDK would validate it against the output
    schema.
    """
    has_data = reply.data is not None and not failed and is_version_at_least(protocol, STRUCTURED_SINCE)
    structured = dict(reply.data or {}) if has_data else None
    content: list[ContentBlock] = [TextContent(type="text", text=reply.text)]
    return CallToolResult(content=content, structured_content=structured, is_error=failed)


class MemoryContext:
    """Memories and documents of one Palaver home."""

    def __init__(self, config: ServerConfig) -> None:
        self.config = config

    @cached_property
    def core(self) -> MemoryCore:
        """Memories of the home. Raises `ServerNotReady`."""
        config = self.config
        return open_component(lambda: MemoryCore.open(config.home, config.model, config.make_judge))

    def namespace(self, named: str, *, claim: bool = False) -> str:
        """Return the namespace in the database for the namespace that a tool call names.

        `project:NAME` with the name of the agent's project selects this project, even if other projects have the same
        name.
        """
        if named != plain_namespace(self.config.project):
            return named
        return self.own_namespace(claim=claim)

    def own_namespace(self, *, claim: bool = False) -> str:
        """Return the namespace of the agent's project. With `claim`, reserve it for this project."""
        projects, folder = self.core.projects, self.config.project
        return projects.claim(folder) if claim else projects.namespace(folder)

    @cached_property
    def documents(self) -> DocumentLibrary:
        """Indexed documents. The first access starts embedding chunks without vectors. Raises `ServerNotReady`."""
        config = self.config
        documents = open_component(lambda: DocumentLibrary.open(config.home, config.roots, config.model))
        self.embed_waiting(documents.stats())
        return documents

    def embed_waiting(self, waiting: DocumentStats | IndexedDirectory) -> None:
        """Start a background process that indexes queued files and embeds chunks, if the server may start one."""
        if self.config.background and (waiting.queued or waiting.unembedded):
            self._background_indexer.wake()

    def close(self) -> None:
        """Close the components that were opened."""
        opened = [self.__dict__.pop(name) for name in ("core", "documents") if name in self.__dict__]
        for component in opened:
            component.close()

    @cached_property
    def _background_indexer(self) -> BackgroundIndexer:
        return BackgroundIndexer(self.config.home, self.config.model)


_VERSION: Final = 8 << 76
"""Version of UUIDs with a custom layout (RFC 9562, section 5.8)."""
_VARIANT: Final = 2 << 62
_KEY: Final = (1 << 62) - 1


def uuid_of(stored: StoredMemory) -> str:
    """Return the UUID of a memory: 48 bits of its creation time in milliseconds, and 62 bits of its key."""
    return str(UUID(int=(stored.created & (1 << 48) - 1) << 80 | _VERSION | _VARIANT | stored.key & _KEY))


def find_by_uuid(core: MemoryCore, memory_id: str) -> StoredMemory:
    """Return the memory with this UUID or public ID, even if it is forgotten.

    Raises:
        MemoryNotFound: No memory has this ID.
        InvalidInput: The text is neither a UUID nor a public ID.
    """
    if ids.canonical(memory_id):
        return core.get(memory_id)
    try:
        known = UUID(memory_id)
    except ValueError:
        raise InvalidInput("memory_id must be a UUID", hint="Use a memory_id from a reply of this server.") from None
    stored = core.get(ids.show("memory", known.int & _KEY))
    if uuid_of(stored) != str(known):
        raise MemoryNotFound(memory_id)
    return stored
