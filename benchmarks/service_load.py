"""Load for a service: HTTP/1.1 and WebSocket by hand, so that the client costs little beside it.

Run by `service.py` as a process of its own: `python -m benchmarks.service_load '{"kind": ...}'`
prints one JSON object: events per second and latencies of what was accepted, and how much was not.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import numpy as np
import uvloop
from benchmarks.open_loop import overload
from websockets.asyncio.client import connect


@dataclass
class Load:
    """What is asked for.

    Attributes:
        kind: single, batch, socket or empty; or open, which is batches that arrive at `rate`.
        url: Of the service.
        key: Access key.
        seconds: How long.
        connections: How many at once.
        events: In one request.
        window: Unanswered events of a socket.
        rate: Requests per second of all connections together; as fast as answers come if 0.
        streams: Different streams.
        most: Events after which it ends, if not 0.
        label: In ids, so that runs do not repeat each other's events.
        statuses: Of replies, counted.
        took: Seconds of each accepted request.
    """

    kind: str
    url: str
    key: str = ""
    seconds: float = 5.0
    connections: int = 64
    events: int = 1
    window: int = 1024
    rate: float = 0.0
    streams: int = 10_000
    most: int = 0
    label: str = "x"
    statuses: Counter[int] = field(default_factory=Counter)
    took: list[float] = field(default_factory=list)
    count: int = 0

    def request(self) -> bytes:
        """The next request."""
        if self.kind == "empty":
            body, path = b"{}", "/empty"
        else:
            events = [self.event() for _ in range(self.events)]
            one = self.kind == "single"
            path = f"/v1/streams/{events[0].pop('stream')}/events" if one else "/v1/events"
            body = json.dumps(events[0] if one else {"events": events}).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    def event(self) -> dict[str, object]:
        """The next event."""
        self.count += 1
        stream = f"u{self.count % self.streams}"
        return {"stream": stream, "id": f"{self.label}{self.count}", "value": "abc"[self.count % 3]}


async def connection(load: Load, until: float) -> None:
    """Requests on one connection, one after the other; at a pace if there is a rate."""
    parts = urlsplit(load.url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    pause = load.connections / load.rate if load.rate else 0.0
    due = time.perf_counter() + pause * np.random.default_rng().random()
    while (now := time.perf_counter()) < until and not 0 < load.most <= load.count:
        if pause:
            await asyncio.sleep(max(due - now, 0))
            due = max(due + pause, time.perf_counter() - pause)
        began = time.perf_counter()
        writer.write(load.request())
        head = await reader.readuntil(b"\r\n\r\n")
        status = int(head[9:12])
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        await reader.readexactly(int(length or 0))
        load.statuses[status] += 1
        if status < 300:
            load.took.append(time.perf_counter() - began)
    writer.close()


async def socket(load: Load, until: float) -> None:
    """Events pipelined on one socket: as many on their way as the window holds."""
    url = load.url.replace("http", "ws", 1) + "/v1/socket"
    head = {"Authorization": f"Bearer {load.key}"}
    begun: dict[int, float] = {}
    room = asyncio.Semaphore(load.window)
    async with connect(url, additional_headers=head, compression=None, max_size=None) as wire:

        async def read() -> None:
            async for text in wire:
                now = time.perf_counter()
                replies = json.loads(text)
                for reply in replies if isinstance(replies, list) else [replies]:
                    load.took.append(now - begun.pop(reply["n"]))
                    load.statuses[200 if reply["status"] == "answered" else 400] += 1
                    room.release()

        reading = asyncio.create_task(read())
        number = 0
        while time.perf_counter() < until:
            message = []
            for _ in range(64):
                await room.acquire()
                number += 1
                begun[number] = time.perf_counter()
                message.append({"n": number, **load.event()})
            await wire.send(json.dumps(message))
        while begun:
            await asyncio.sleep(0.01)
        reading.cancel()


async def run(load: Load) -> dict[str, object]:
    """All connections together."""
    if load.kind == "open":
        requests = [load.request() for _ in range(int(load.rate * load.seconds))]
        return await overload(load.url, requests, load.rate)
    began = time.perf_counter()
    work = socket if load.kind == "socket" else connection
    until = began + load.seconds
    await asyncio.gather(*(work(load, until) for _ in range(load.connections)))
    taken = time.perf_counter() - began
    middle, high = np.percentile(load.took or [0.0], [50, 99]) * 1e3
    per = load.events if load.kind == "batch" else 1
    return {
        "rate": len(load.took) * per / taken,
        "p50": middle,
        "p99": high,
        "statuses": load.statuses,
        "accepted": len(load.took) * per,
        "taken": taken,
    }


if __name__ == "__main__":
    print(json.dumps(uvloop.run(run(Load(**json.loads(sys.argv[1]))))))
