"""What did we learn, by rules alone? The default extractor: no key, no network, the same answer every time.

One exchange yields at most one outcome (what was asked, done and concluded), one lesson (what was found on the way) and
the person's own choices. Exchanges in which nothing changed and nothing was explained yield nothing.
"""

from msgspec.structs import replace

from ...core.conversation import Exchange, Session
from ..proof import Proven, prove
from .budget import affordable
from .choices import choices
from .files import files
from .lessons import lesson, remarks
from .outcome import outcome
from .story import story

VERSION = "rules-4"
"""Raised whenever the same exchange would yield something else."""


def observe(exchange: Exchange, session: Session) -> Proven:
    """What one exchange taught, most telling first, and how many facts were refused because no line bears them out.

    `evidence` proves `facts` one for one, in the same order; what follows them proves the narrative.
    """
    told = story(exchange)
    touched = files(exchange, session)
    found = remarks(told)
    main = outcome(exchange, told, touched, found if len(found) < 2 else ())
    aside = lesson(exchange, told, touched, found, main.title if main else told.request.title)
    learned = [observation for observation in (main, aside) if observation is not None]
    every = (*learned, *choices(exchange, told))
    return prove(exchange, (affordable(replace(observation, extractor=VERSION)) for observation in every))
