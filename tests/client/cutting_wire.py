"""A wire between client and server that breaks at chosen moments: after the server has answered."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class CuttingWire:
    """Forwards bytes both ways; a cut swallows what the server answers next, and both ends close.

    Attributes:
        cuts: How many answers are still to be swallowed.
        swallowed: How many were.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self.cuts = self.swallowed = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def accept(self) -> None:
        with suppress(OSError):  # the listener is closed at the end
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._port))
                for one, other, answers in ((near, far, False), (far, near, True)):
                    work = threading.Thread(target=self._forward, args=(one, other, answers))
                    work.daemon = True
                    work.start()

    def _forward(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if answers and self._is_cut(data):
                    break
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _is_cut(self, data: bytes) -> bool:
        with self._lock:
            # A handshake is no answer: of a socket, what comes after it is cut.
            if self.cuts == 0 or data.startswith(b"HTTP/1.1 101"):
                return False
            self.cuts -= 1
            self.swallowed += 1
            return True

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@contextmanager
def cutting_wire(port: int) -> Iterator[CuttingWire]:
    wire = CuttingWire(port)
    worker = threading.Thread(target=wire.accept, daemon=True)
    worker.start()
    try:
        yield wire
    finally:
        wire.close()
        worker.join()
