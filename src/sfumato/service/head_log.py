"""The heads of a home, told to its log: what shows elsewhere, later, that nothing was forgotten.

A log that is sent to another machine is an anchor that whoever can write the home cannot change. At
the start and at the end every head is written; in between those that have moved since.
"""

from __future__ import annotations

import logging
import threading
from enum import StrEnum

from sfumato.core.errors import SfumatoError
from sfumato.service.event_log import EventLog
from sfumato.store.home import Home
from sfumato.store.home_anchor import HomeAnchor

REGISTRY = ""
"""The registry among heads: no ledger has an empty name."""


class Moment(StrEnum):
    """Why heads are written.

    Attributes:
        START: The service begins; all of them.
        GROWN: Some time has passed; those that have moved.
        END: The service has answered all that it took; all of them.
    """

    START = "start"
    GROWN = "grown"
    END = "end"


class HeadLog:
    """Writes the heads of a home to a log; safe in threads.

    Examples:
        >>> from sfumato.store.home import MemoryHome
        >>> lines = []
        >>> home = MemoryHome()
        >>> heads = HeadLog(home, EventLog(lines.append, b"a secret"))
        >>> heads.tell(Moment.START).registry == home.heads().registry
        True
        >>> _ = heads.tell(Moment.GROWN)  # nothing has moved
        >>> [b'"event":"head"' in line for line in lines]
        [True]
    """

    def __init__(self, home: Home, log: EventLog) -> None:
        self._home, self._log = home, log
        self._told: dict[str, str] = {}
        self._lock = threading.Lock()

    def tell(self, moment: Moment) -> HomeAnchor | None:
        """Write the heads, and return them; None if they cannot be read now, which is logged.

        It asks the disk or the database: call it in a thread.
        """
        with self._lock:
            try:
                found = self._home.heads()
            except (SfumatoError, OSError) as problem:
                self._log.event("heads not read", level=logging.ERROR, failure=problem)
                return None
            for name, head in {REGISTRY: found.registry, **found.ledgers}.items():
                if moment is Moment.GROWN and self._told.get(name) == head:
                    continue
                self._log.event("head", release=name or None, head=head, reason=moment.value)
                self._told[name] = head
            return found
