"""Sessions and exchanges that a language model has not read yet, as far as the stored rows tell."""

from ...core.conversation import Milliseconds
from .database import Database
from .observation_table import FINDING_PREFIX, MODEL_PREFIX, OPTED_OUT, SUMMARY_PREFIX


class ModelQueue:
    """Queue of the extraction with a language model. It is derived, so nothing has to be added or removed."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def sessions(self, version: str, quiet_since: Milliseconds) -> list[int]:
        """Return the sessions without a card of this prompt version and without activity since `quiet_since`.

        Sessions that no model has read come first, then those with a card of another version. Both parts begin with
        the newest session.
        """
        return self._db.numbers(
            """SELECT s.id FROM session s JOIN item i ON i.session = s.id JOIN exchange e ON e.item = i.key
                LEFT JOIN (SELECT m.session, o.extractor FROM summary m JOIN observation o ON o.item = m.item) card
                    ON card.session = s.id AND card.extractor LIKE ?
                WHERE s.kind = 'main' AND coalesce(card.extractor, '') NOT LIKE ?
                GROUP BY s.id HAVING total(e.observed = ?) = 0 AND max(coalesce(e.ended, i.at, 0)) <= ?
                ORDER BY card.extractor IS NOT NULL, max(coalesce(i.at, 0)) DESC, s.id DESC""",
            (f"{SUMMARY_PREFIX}%", f"{SUMMARY_PREFIX}%:{version}", OPTED_OUT, quiet_since),
        )

    def exchanges(self, version: str) -> list[int]:
        """Return the exchanges that were not sent alone with this prompt version, newest first."""
        return self._db.numbers(
            """SELECT e.item FROM exchange e JOIN item i ON i.key = e.item
                WHERE coalesce(e.observed, '') <> ?
                    AND (coalesce(e.observed, '') NOT LIKE ? OR e.observed LIKE ?)
                ORDER BY coalesce(i.at, 0) DESC, i.key DESC""",
            (OPTED_OUT, f"{MODEL_PREFIX}%:{version}", f"{FINDING_PREFIX}%"),
        )

    def release_findings(self, session: int) -> None:
        """Schedule a new extraction by rules for the exchanges with findings of a model that read the session."""
        self._db.run(
            """UPDATE exchange SET observed = NULL WHERE observed LIKE ?
                AND item IN (SELECT key FROM item WHERE session = ?)""",
            (f"{FINDING_PREFIX}%", session),
        )
