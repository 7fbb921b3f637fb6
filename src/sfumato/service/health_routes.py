"""Whether the service lives, whether it can answer, and what it counts."""

from __future__ import annotations

import asyncio

import msgspec

from sfumato.service.metrics import METRICS_MEDIA
from sfumato.service.operations import Call, Operation, Result

LOOK_SECONDS = 5.0
"""After which whoever asks for readiness is told that nothing answered."""


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
    # It asks the disk and the database: in a thread, for either may hang, and not for ever.
    try:
        async with asyncio.timeout(LOOK_SECONDS):
            lacking = await call.application.looks.look("ready", call.application.ready)
    except TimeoutError:
        lacking = [f"the disk or the database did not answer for {LOOK_SECONDS:g} seconds"]
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
