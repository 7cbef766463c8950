"""Tests for agents/resources.py: clients learn that the list of sessions changed."""

from typing import Any

import anyio
import pytest
from mcp.client.client import Client
from mcp.server.lowlevel import Server
from mcp.shared.subscriptions import ResourcesListChanged
from mcp_types import ListResourcesResult, ResourceListChangedNotification

from palaver.agents.resources import SessionWatch
from palaver.agents.server import PalaverServer, watching
from palaver.core.errors import StoreBusy


class Sessions:
    """Addresses that a test changes. `looks` counts how often they were read."""

    def __init__(self) -> None:
        self.addresses = frozenset({"palaver://session/a"})
        self.looks = 0
        self.busy = False
        self.watch = SessionWatch(self.read, seconds=0.01)

    async def read(self) -> frozenset[str]:
        """Return the addresses."""
        self.looks += 1
        if self.busy:
            self.busy = False
            raise StoreBusy("another process writes")
        return self.addresses

    def server(self) -> Server[Any]:
        """Return a server with only the list of resources."""

        async def listed(context: Any, _params: object) -> ListResourcesResult:
            notify = context.protocol_version != "2026-07-28"
            self.watch.listed(self.addresses, context, notify=notify)
            return ListResourcesResult(resources=[])

        return PalaverServer(
            "test",
            on_list_resources=listed,
            on_subscriptions_listen=self.watch.listen,
            lifespan=watching(self.watch),
        )


def test_a_client_with_a_handshake_is_notified_after_it_listed_resources() -> None:
    """A new session sends one notification to every such client."""
    sessions, arrived = Sessions(), anyio.Event()

    async def received(message: object) -> None:
        if isinstance(message, ResourceListChangedNotification):
            arrived.set()

    async def run() -> None:
        async with Client(sessions.server(), mode="legacy", message_handler=received) as client:
            await client.list_resources()
            sessions.busy = True
            sessions.addresses |= {"palaver://session/b"}
            with anyio.fail_after(30):
                await arrived.wait()

    anyio.run(run)


def test_a_subscribed_client_is_notified() -> None:
    """Only changes of the list of resources are confirmed and sent, even if a client asks for more."""
    sessions = Sessions()

    async def run() -> None:
        async with (
            Client(sessions.server(), mode="2026-07-28") as client,
            client.listen(resources_list_changed=True, tools_list_changed=True) as subscription,
        ):
            assert subscription.honored.resources_list_changed
            assert not subscription.honored.tools_list_changed
            await client.list_resources()
            sessions.addresses |= {"palaver://session/b"}
            with anyio.fail_after(30):
                async for event in subscription:
                    assert event == ResourcesListChanged()
                    break

    anyio.run(run)


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
def test_the_archive_is_not_read_for_clients_without_resources(era: str) -> None:
    """A server whose clients list no resources does not look at the archive."""
    sessions = Sessions()

    async def run() -> None:
        async with Client(sessions.server(), mode=era):
            await anyio.sleep(0.1)

    anyio.run(run)
    assert sessions.looks == 0
