"""Messages that cannot be read, and what is told of them: never what they hold."""

from __future__ import annotations

import hmac


class BadMessage(Exception):
    """A message breaks a rule; which one is said, what was there is not.

    Attributes:
        field: The part of the message.
        rule: What must hold.
    """

    def __init__(self, field: str, rule: str) -> None:
        self.field, self.rule = field, rule
        super().__init__(f"{field} must {rule}")


def message_digest(secret: bytes, topic: str, payload: bytes) -> str:
    """What a message is known by to whoever holds it already; without the secret it tells nothing.

    Examples:
        >>> len(message_digest(b"secret", "raw/ann", b"home"))
        32
    """
    # The length keeps topic and payload apart.
    name = topic.encode(errors="surrogatepass")
    whole = len(name).to_bytes(4, "big") + name + payload
    return hmac.digest(secret, whole, "sha256").hex()[:32]
