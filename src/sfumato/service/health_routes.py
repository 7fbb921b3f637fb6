"""Whether the service lives, whether it can answer, and what it counts."""

from __future__ import annotations

import msgspec

from sfumato.service.metrics import METRICS_MEDIA
from sfumato.service.operations import Call, Operation, Result


class Health(msgspec.Struct, frozen=True):
    """Whether the service can answer.

    Attributes:
        status: `ok`, or `unavailable`.
        lacking: What keeps it from answering.
    """

    status: str
    lacking: list[str] = []


async def _alive(call: Call) -> Result:
    return Result(Health("ok"))


async def _ready(call: Call) -> Result:
    # It asks the disk and the database: in a thread, for either may hang.
    lacking = await call.application.looks.look("ready", call.application.ready)
    if lacking:
        return Result(Health("unavailable", lacking), 503)
    return Result(Health("ok"))


async def _metrics(call: Call) -> Result:
    text = await call.application.looks.look("metrics", call.application.metrics.text)
    return Result(text, media=METRICS_MEDIA)


HEALTH_OPERATIONS = (
    Operation(
        name="get_health",
        method="GET",
        path="/healthz",
        summary="Whether the process lives",
        handler=_alive,
        replies={200: Health},
    ),
    Operation(
        name="get_readiness",
        method="GET",
        path="/readyz",
        summary="Whether events would be answered now",
        handler=_ready,
        replies={200: Health, 503: Health},
    ),
    Operation(
        name="get_metrics",
        method="GET",
        path="/metrics",
        summary="Figures for Prometheus",
        handler=_metrics,
        action="metrics",
        media="text/plain",
        replies={200: str},
    ),
)
