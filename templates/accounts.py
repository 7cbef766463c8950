"""The JSON of `palaver observe` and `palaver stats`. Amounts are in dollars."""

from typing import TypedDict

from ..core.money import DOLLAR
from ..core.spending import Estimate, Extraction, Stats


class EstimateJson(TypedDict):
    """What asking would cost: one by one, and in batches."""

    model: str
    exchanges: int
    skipped: int
    private: int
    tokens_in: int
    tokens_out: int
    dollars: float
    dollars_in_batches: float
    priced: str


class ExtractionJson(TypedDict):
    """What one run did; `stopped` is why it ended early."""

    asked: int
    learned: int
    nothing: int
    observations: int
    refused: int
    failed: int
    given_up: int
    sent: int
    pending: int
    waiting: int
    dollars: float
    stopped: str | None


class SpentJson(TypedDict):
    """What one model was used for."""

    model: str
    reason: str
    calls: int
    unanswered: int
    dollars: float
    tokens_in: int
    cache_written: int
    cache_read: int
    tokens_out: int


class LayersJson(TypedDict):
    """What the last exchanges that taught something cost to read: as observations, what was said in them alone, and
    all that is kept of them.
    """

    exchanges: int
    observations: int
    observed_tokens: int
    said_tokens: int
    kept_tokens: int


class StatsJson(TypedDict):
    """What was spent, what each budget still allows, and what reading observations costs beside reading all."""

    spent: list[SpentJson]
    left: dict[str, float]
    requests: dict[str, int]
    refused: int
    layers: LayersJson


def estimate_json(estimate: Estimate) -> EstimateJson:
    """An estimate."""
    return EstimateJson(
        model=estimate.model,
        exchanges=estimate.exchanges,
        skipped=estimate.skipped,
        private=estimate.private,
        tokens_in=estimate.tokens_in,
        tokens_out=estimate.tokens_out,
        dollars=estimate.cost / DOLLAR,
        dollars_in_batches=estimate.batch / DOLLAR,
        priced=estimate.priced,
    )


def extraction_json(done: Extraction) -> ExtractionJson:
    """What one run did."""
    return ExtractionJson(
        asked=done.asked,
        learned=done.learned,
        nothing=done.nothing,
        observations=done.observations,
        refused=done.refused,
        failed=done.failed,
        given_up=done.buried,
        sent=done.sent,
        pending=done.pending,
        waiting=done.waiting,
        dollars=done.cost / DOLLAR,
        stopped=None if done.stopped is None else str(done.stopped),
    )


def stats_json(stats: Stats) -> StatsJson:
    """The accounts."""
    return StatsJson(
        spent=[
            SpentJson(
                model=row.model,
                reason=row.reason,
                calls=row.calls,
                unanswered=row.unanswered,
                dollars=row.cost / DOLLAR,
                tokens_in=row.usage.tokens_in,
                cache_written=row.usage.cache_written,
                cache_read=row.usage.cache_read,
                tokens_out=row.usage.tokens_out,
            )
            for row in stats.spent
        ],
        left={span: amount / DOLLAR for span, amount in stats.left.items()},
        requests=stats.jobs,
        refused=stats.refused,
        layers=LayersJson(
            exchanges=stats.layers.exchanges,
            observations=stats.layers.observations,
            observed_tokens=stats.layers.told,
            said_tokens=stats.layers.said,
            kept_tokens=stats.layers.kept,
        ),
    )
