"""What goes wrong between a client and a service.

SfumatoError
├── ServiceRefused       the service said no: asking again the same way will not help
└── ServiceUnavailable   no answer came in time: asking again with the same ids is safe

No message quotes a value or an access key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.core.errors import SfumatoError

if TYPE_CHECKING:
    from sfumato.client.wire import Problem


class ServiceRefused(SfumatoError):
    """The service said no; nothing was drawn for this event.

    Attributes:
        problem: Why, in the words of the service.

    Examples:
        >>> from sfumato.client.wire import Problem
        >>> raise ServiceRefused(Problem("urn:sfumato:problem:budget", "Budget gone", 403))
        Traceback (most recent call last):
        sfumato.client.client_errors.ServiceRefused: Budget gone (403)
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        about = "" if problem.event is None else f"; event {problem.event!r}"
        detail = f": {problem.detail}" if problem.detail else ""
        super().__init__(f"{problem.title}{detail} ({problem.status}{about})")


class ServiceUnavailable(SfumatoError):
    """No answer came; whether one was drawn is not known, and asking with the same ids is safe.

    Examples:
        >>> print(ServiceUnavailable("no connection", attempts=3))
        the service gave no answer after 3 attempts: no connection; the same ids may be sent again
    """

    def __init__(self, why: str, attempts: int = 1) -> None:
        self.attempts = attempts
        tried = f" after {attempts} attempts" if attempts > 1 else ""
        super().__init__(
            f"the service gave no answer{tried}: {why}; the same ids may be sent again"
        )
