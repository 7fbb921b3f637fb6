"""A second Mosquitto that relays between two trees of topics of the first, by its own bridge.

One connection takes true values in, with a session that the first broker keeps; another sends the
same messages out to another tree, both at QoS 1. (One connection could not do both: a bridge sends
nothing back to where it came from.) A rival from outside: none of it is ours, and all of it is C.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.servers import PrivateMosquitto, private_mosquitto

OUTSIDE = "relay of Mosquitto"
RAW, PRIVATE = "outside/raw/", "outside/private/"
"""Trees of its own: sessions of bridges would keep messages of others."""
_SUBSCRIBER = "mosquitto_sub"
_PATIENCE = 120.0


@dataclass(frozen=True)
class MosquittoRelay:
    """A relay that is away; messages wait for it.

    Attributes:
        first: The broker on both ends.
        second: The one that relays; not running.
    """

    first: PrivateMosquitto
    second: PrivateMosquitto

    @classmethod
    @contextmanager
    def beside(cls, first: PrivateMosquitto, setting: str) -> Iterator[MosquittoRelay]:
        """A relay whose session the first broker has, and nothing else of it."""
        if shutil.which(_SUBSCRIBER) is None:
            raise RuntimeError(f"{_SUBSCRIBER} must be installed: apt install mosquitto-clients")
        settings = [setting, "set_tcp_nodelay true"]
        for name, topic in (("in", f"# in 1 relay/ {RAW}"), ("out", f"# out 1 relay/ {PRIVATE}")):
            settings += [
                *(f"connection {name}", f"address 127.0.0.1:{first.port}", f"topic {topic}"),
                *(f"remote_clientid relay-{name}", "cleansession false", "try_private true"),
                *("notifications false", "restart_timeout 1", "bridge_protocol_version mqttv311"),
            ]
        with private_mosquitto(*settings) as second:
            relay = cls(first, second)
            relay._settle()
            second.stop(signal.SIGTERM)
            yield relay
            # Its sessions would gather what the ways after it send.
            for name in ("in", "out"):
                relay._forget(f"relay-{name}")

    def measured(self, count: int) -> tuple[float, float]:
        """Seconds of the clock and of the second broker, for all that waits.

        The clock runs from the first message that came through to the last: what a start takes is
        not counted, in favour of the relay.
        """
        with self._listening(count) as listener:
            self.second.start()
            out, _ = listener.communicate(timeout=_PATIENCE)
        assert self.second.process is not None
        spent = int(Path(f"/proc/{self.second.process.pid}/schedstat").read_text().split()[0]) / 1e9
        self.second.stop(signal.SIGTERM)
        moments = [float(line) for line in out.split()]
        if len(moments) != count:
            raise RuntimeError("each message must have been relayed once")
        return max(moments) - min(moments), spent

    @contextmanager
    def _listening(self, count: int) -> Iterator[subprocess.Popen[str]]:
        command = [_SUBSCRIBER, "-h", "127.0.0.1", "-p", str(self.first.port), "-q", "1"]
        command += ["-t", f"{PRIVATE}#", "-C", str(count), "-F", "%U"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as listener:
            time.sleep(0.3)  # it has subscribed by then
            yield listener

    def _settle(self) -> None:
        """Wait until a message comes through: sessions are there then."""
        command = [_SUBSCRIBER, "-h", "127.0.0.1", "-p", str(self.first.port), "-q", "1"]
        command += ["-t", f"{PRIVATE}settled", "-C", "1"]
        teller = ["mosquitto_pub", *command[1:7], "-t", f"{RAW}settled", "-m", "x"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as listener:
            end = time.monotonic() + _PATIENCE
            while listener.poll() is None:
                if time.monotonic() > end:
                    listener.kill()
                    raise RuntimeError("the relay of Mosquitto did not come up")
                subprocess.run(teller, check=True)
                time.sleep(0.2)
        time.sleep(0.5)  # what was sent twice has come through, too

    def _forget(self, session: str) -> None:
        """Let the first broker drop a session."""
        command = [_SUBSCRIBER, "-h", "127.0.0.1", "-p", str(self.first.port), "-i", session]
        subprocess.run([*command, "-t", "nothing", "-W", "1"], check=False, capture_output=True)
