"""Requests that arrive at a fixed rate, whatever the replies: how an overload is really met.

Bodies are made before the first arrival, so that the client costs little meanwhile. An arrival
takes a connection that is free, or opens one; how long it takes counts from when it was due, so a
client that falls behind hides nothing (`late` says how far it fell).
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import numpy as np

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class OpenLoop:
    """Arrivals, and what became of them.

    Attributes:
        url: Of the service.
        requests: What is sent, in order.
        rate: Arrivals per second.
        statuses: Of replies, counted; 0 for connections that broke.
        took: Seconds of each accepted request, from when it was due.
        refused: The same of each refused one.
        open: Connections that were opened.
        late: Seconds that the latest arrival was sent after it was due.
    """

    url: str
    requests: list[bytes]
    rate: float
    statuses: Counter[int] = field(default_factory=Counter)
    took: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)
    open: int = 0
    late: float = 0.0
    _free: deque[Connection] = field(default_factory=deque)

    async def run(self) -> float:
        """Send everything; the seconds until the last reply."""
        began, tasks = time.perf_counter(), set[asyncio.Task[None]]()
        for number, request in enumerate(self.requests):
            due = began + number / self.rate
            if (wait := due - time.perf_counter()) > 0:
                await asyncio.sleep(wait)
            elif number % 16 == 0:
                await asyncio.sleep(0)  # replies are read also by a client that is late
            task = asyncio.ensure_future(self._one(request, due))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        if tasks:
            await asyncio.wait(tasks)
        return time.perf_counter() - began

    async def _one(self, request: bytes, due: float) -> None:
        try:
            reader, writer = own = await self._connection()
            self.late = max(self.late, time.perf_counter() - due)
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            await reader.readexactly(int(length or 0))
        except (OSError, EOFError):
            self.statuses[0] += 1
            return
        status = int(head[9:12])
        self.statuses[status] += 1
        (self.took if status < 300 else self.refused).append(time.perf_counter() - due)
        if b"connection: close" in head.lower():
            writer.close()
        else:
            self._free.append(own)

    async def _connection(self) -> Connection:
        if self._free:
            return self._free.pop()
        self.open += 1
        parts = urlsplit(self.url)
        return await asyncio.open_connection(parts.hostname, parts.port)


async def overload(url: str, requests: list[bytes], rate: float) -> dict[str, object]:
    """What became of arrivals at a rate."""
    loop = OpenLoop(url, requests, rate)
    taken = await loop.run()
    percentiles = [np.percentile(one or [0.0], [50, 99]) * 1e3 for one in (loop.took, loop.refused)]
    return {
        "statuses": loop.statuses,
        "accepted": len(loop.took),
        "taken": taken,
        "p50": percentiles[0][0],
        "p99": percentiles[0][1],
        "refused_p50": percentiles[1][0],
        "refused_p99": percentiles[1][1],
        "connections": loop.open,
        "late": loop.late,
    }
