"""Fixtures for tests of results."""

import pytest

from ..history import MAY_1, History, Said


@pytest.fixture
def archive(history: History) -> History:
    """Archive with three conversations about kitchens."""
    history.say("tea", Said("brass kettle", "It whistles ERR_AUTH_FAILED at 3.", MAY_1), Said("steel kettle", at=MAY_1))
    history.say("soup", Said("copper pan", "The kettle helps.", MAY_1 + 86_400_000, writes=("/w/src/soup.py",)))
    history.say("ship", Said("deploy 🚀 with 検索エンジン and naïve caching"))
    history.embed()
    history.publish()
    return history
