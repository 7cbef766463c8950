"""Notifications to clients when the list of the latest sessions changes.

Clients of older protocol versions get them after they listed the resources, newer clients after they subscribed.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged
from mcp_types import SubscriptionFilter, SubscriptionsListenRequestParams, SubscriptionsListenResult

from ..core.errors import PalaverError

SECONDS: Final = 10.0
"""Seconds between two checks of the archive."""
_CLIENTS_MAX: Final = 100
"""Maximum number of clients that are notified without a subscription. Above it, the oldest client is dropped."""


class SessionWatch:
    """Watcher of the latest sessions. It starts when a client lists resources or subscribes to their list."""

    def __init__(self, addresses: Callable[[], Awaitable[frozenset[str]]], seconds: float = SECONDS) -> None:
        self._addresses, self._seconds = addresses, seconds
        self._known: frozenset[str] | None = None
        self._clients: dict[str, ServerSession] = {}
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus)
        self._wanted = anyio.Event()

    def listed(self, addresses: frozenset[str], context: ServerRequestContext[Any, Any], *, notify: bool) -> None:
        """Record the resource URIs that a client received. With `notify`, notify this client of later changes."""
        if self._known is None:
            self._known = addresses
        if notify:
            headers = getattr(context.request, "headers", {})
            client = headers.get("mcp-session-id", "")
            self._clients.pop(client, None)
            self._clients[client] = context.session
            while len(self._clients) > _CLIENTS_MAX:
                del self._clients[next(iter(self._clients))]
            self._wanted.set()

    async def listen(
        self, context: ServerRequestContext[Any, Any], params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Serve a subscription to changes of the resource list. Subscriptions to other kinds of changes are ignored."""
        only = SubscriptionFilter(resources_list_changed=params.notifications.resources_list_changed)
        self._wanted.set()
        return await self._listen(context, params.model_copy(update={"notifications": only}))

    async def run(self) -> None:
        """Watch until cancelled."""
        await self._wanted.wait()
        while True:
            await self._look()
            await anyio.sleep(self._seconds)

    async def _look(self) -> None:
        try:
            addresses = await self._addresses()
        except (PalaverError, OSError):  # The next request of a client reports the problem.
            logging.getLogger(__name__).debug("the latest sessions cannot be read", exc_info=True)
            return
        changed, self._known = self._known is not None and addresses != self._known, addresses
        if changed:
            await self._bus.publish(ResourcesListChanged())
            for client in [*self._clients.values()]:
                await client.send_resource_list_changed()  # The SDK drops notifications to clients that have gone.
