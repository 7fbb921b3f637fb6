"""The client of a service: events in, answers out, retries that are safe by construction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.core.lazy import lazily

if TYPE_CHECKING:
    from sfumato.client.async_client import AsyncClient as AsyncClient
    from sfumato.client.async_session import AsyncSession as AsyncSession
    from sfumato.client.attempts import Patience as Patience
    from sfumato.client.client import Client as Client
    from sfumato.client.client_errors import ServiceRefused as ServiceRefused
    from sfumato.client.client_errors import ServiceUnavailable as ServiceUnavailable
    from sfumato.client.session import Session as Session
    from sfumato.client.wire import GivenAnswer as GivenAnswer
    from sfumato.client.wire import LiveEvent as LiveEvent
    from sfumato.client.wire import Problem as Problem
    from sfumato.client.wire import Reply as Reply

__getattr__, __dir__ = lazily(__name__)
