"""What may be asked of a service, said once for clients that wait and for those that do not."""

from __future__ import annotations

import os
import ssl
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Generic, TypeVar

from sfumato.client.attempts import Attempts, Patience
from sfumato.client.calls import Call
from sfumato.client.endpoint import Endpoint
from sfumato.core.errors import ForkedUse

Document = TypeVar("Document")


class Questions(ABC, Generic[Document]):
    """A service and what is asked of it; a client says how documents come: at once, or awaited."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        release: str | None = None,
        timeout: float = 10.0,
        retries: int = 8,
        deadline: float = 60.0,
        ca: str | Path | ssl.SSLContext | None = None,
        cleartext: bool = False,
    ) -> None:
        self._endpoint = Endpoint.at(url, key, release, ca, cleartext=cleartext)
        self._patience = Patience(timeout, retries, deadline)
        self._process = os.getpid()
        self._open()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._endpoint.path or self._endpoint.http!r})"

    @abstractmethod
    def _open(self) -> None:
        """Make ready for calls; connections come with the first."""

    @abstractmethod
    def _document(self, call: Call) -> Document:
        """The document that answers a call."""

    def budget(self, stream: str) -> Document:
        """What a stream has spent and what is left, under both certificates."""
        return self._read("streams", stream, "budget")

    def certificate(self, stream: str) -> Document:
        """What a stream leaked, in the words of `sfumato audit`."""
        return self._read("streams", stream, "certificate")

    def recovered(self, stream: str) -> Document:
        """What a receiver may infer: the posterior of each value given all outputs."""
        return self._read("streams", stream, "recovered")

    def belief(self, stream: str) -> Document:
        """What an adversary believed at each step."""
        return self._read("streams", stream, "belief")

    def plan(self, epsilon: float) -> Document:
        """The loss that a budget would leave, with its bound and that of silence."""
        return self._read("plan", epsilon=epsilon)

    def head(self) -> Document:
        """The head of the ledger: keep it elsewhere, and an older copy cannot take its place."""
        return self._read("ledger", "head")

    def releases(self) -> Document:
        """The releases of the service; needs a key for administration, as the next two do."""
        return self._read("releases")

    def models(self) -> Document:
        """The models of the service."""
        return self._read("models")

    def close_release(self, name: str) -> Document:
        """Let a release answer no more events, on all nodes; needs a key for administration.

        Its answers are told as ever, also to events that come again. There is no way back; to ask
        twice changes nothing.
        """
        return self._document(Call("POST", self._endpoint.target("releases", name, "close")))

    def rules(self) -> Document:
        """The rules of the release that answers this client, with its name and job.

        `only` is false if streams may belong to other releases, because none was named.
        """
        return self._read("rules")

    def policies(self) -> Document:
        """The compiled policies of the service."""
        return self._read("policies")

    def _read(self, *parts: str, **asked: str | int | float | None) -> Document:
        return self._document(Call("GET", self._endpoint.target(*parts, **asked)))

    def _begun(self, attempts: Attempts | None) -> Attempts:
        """The attempts of a call, in the process that may make it."""
        self._check_process()
        return Attempts(self._patience) if attempts is None else attempts

    def _check_process(self) -> None:
        # Two processes on one connection would take each other's answers.
        if os.getpid() != self._process:
            raise ForkedUse("client")
