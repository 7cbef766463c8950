"""Pool of processes that parse transcripts."""

from ...core.worker_pool import WorkerPool


class ParserPool(WorkerPool):
    """Pool whose processes load the modules that parse transcripts."""

    def __init__(self) -> None:
        super().__init__(f"{__package__}.parallel_parsing")
