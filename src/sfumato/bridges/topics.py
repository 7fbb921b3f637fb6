"""Topics of MQTT: which stream a message is of, and where its answer goes."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.bridges.bad_messages import BadMessage
from sfumato.core.errors import InvalidParameter

STREAM, STREAMS = "{stream}", "{stream...}"
LONGEST_NAME = 256
"""Characters of a stream or an id: names anything, and fits an index of every store."""


@dataclass(frozen=True, slots=True)
class TopicTemplate:
    """Topics in which one level names the stream.

    Attributes:
        levels: Texts, `+` for any one level, `#` at the end for any more, and one `{stream}`, or
            `{stream...}` at the end for all levels from there on, joined by `/`.
        subscription: The filter that a broker is given.

    Examples:
        >>> TopicTemplate.of("raw/{stream}/cell").stream("raw/ann/cell")
        'ann'
        >>> TopicTemplate.of("raw/{stream...}").stream("raw/berlin/ann")
        'berlin/ann'
        >>> TopicTemplate.of("raw/#").stream("raw/ann")
        'ann'
    """

    levels: tuple[str, ...]
    subscription: str

    @classmethod
    def of(cls, text: str) -> TopicTemplate:
        """A template as it is typed; `raw/#` is short for one level below `raw`.

        Raises:
            InvalidParameter: If it is no filter, or does not name one level.
        """
        levels = text.split("/")
        if levels[-1] == "#" and STREAM not in levels:
            # Deeper topics are received and refused: nobody can know whose values they are.
            return cls((*_checked(levels[:-1]), STREAM), text)
        checked = _checked(levels)
        if sum(level in (STREAM, STREAMS) for level in checked) != 1:
            rule = "name one level {stream}, or end with {stream...} or #"
            raise InvalidParameter("--in", text, rule)
        words = {STREAM: "+", STREAMS: "#"}
        return cls(checked, "/".join(words.get(level, level) for level in checked))

    def stream(self, topic: str) -> str:
        """The stream of a topic.

        Raises:
            BadMessage: If the topic is not of this form, or its stream cannot be a name.
        """
        given = topic.split("/")
        open_end = self.levels[-1] in ("#", STREAMS)
        fits = len(given) == len(self.levels) or (open_end and len(given) >= len(self.levels) - 1)
        pairs = zip(self.levels, given, strict=False)
        if not fits or any(not _fits(level, word) for level, word in pairs):
            raise BadMessage("topic", f"be of the form {'/'.join(self.levels)}")
        if STREAM in self.levels:
            return _name(given[self.levels.index(STREAM)])
        return _name("/".join(given[len(self.levels) - 1 :]))


def _checked(levels: list[str]) -> tuple[str, ...]:
    """Levels of a filter, or the rule that they break."""
    whole = "/".join(levels)
    for place, level in enumerate(levels):
        last = place == len(levels) - 1
        if level in ("#", STREAMS) and not last:
            raise InvalidParameter("--in", whole, f"have {level} at its end alone")
        special = level in ("+", "#", STREAM, STREAMS)
        if not special and set(level) & set("+#{}"):
            rule = "have +, #, {stream} and {stream...} as whole levels alone"
            raise InvalidParameter("--in", whole, rule)
    if levels and levels[0].startswith("$"):
        raise InvalidParameter("--in", whole, "not begin with $, which belongs to the broker")
    return tuple(levels)


def _fits(level: str, word: str) -> bool:
    return level in ("+", "#", STREAM, STREAMS) or level == word


def _name(stream: str) -> str:
    if not stream or stream.startswith("$"):
        # Topics with a $ are the bridge's own below --out.
        raise BadMessage("stream", "not be empty, nor begin with $")
    return checked_name("stream", stream)


def checked_name(field: str, name: str) -> str:
    """A name that every store and log can hold.

    Raises:
        BadMessage: If it is too long or has control characters.
    """
    if len(name) > LONGEST_NAME or not name.isprintable():
        rule = f"have at most {LONGEST_NAME} characters, all of them printable"
        raise BadMessage(field, rule)
    return name


@dataclass(frozen=True, slots=True)
class OutTopics:
    """Where everything goes that a bridge publishes.

    Attributes:
        answers: What the topics of answers begin with; the stream comes behind it.
        notices: What the topics of refusals and dead letters begin with.

    Examples:
        >>> topics = OutTopics.of("private/", "bridge", TopicTemplate.of("raw/#"))
        >>> topics.answer("ann"), topics.status, topics.dead
        ('private/ann', 'private/$bridge/status', 'bridge/dead')
    """

    answers: str
    notices: str

    @classmethod
    def of(cls, answers: str, notices: str, template: TopicTemplate) -> OutTopics:
        """Both as they are typed, if they are apart from each other and from what comes in.

        Raises:
            InvalidParameter: If a topic has wildcards, or a bridge would hear itself, or whoever
                reads answers would read why others were refused.
        """
        found = {}
        for option, text in (("--out", answers), ("--notices", notices)):
            prefix = text.removesuffix("/")
            if not prefix or set(prefix) & set("+#{}\0") or prefix.startswith("$"):
                rule = "be a topic without wildcards, such as private/"
                raise InvalidParameter(option, text, rule)
            if _overlap(template.subscription, prefix):
                raise InvalidParameter(option, text, "lie outside of --in: a bridge hears itself")
            found[option] = f"{prefix}/"
        first, second = found.values()
        if first.startswith(second) or second.startswith(first):
            # A refusal may depend on the value; answers are for everybody, refusals are not.
            raise InvalidParameter("--notices", notices, "lie outside of --out")
        return cls(first, second)

    def answer(self, stream: str) -> str:
        """The topic of the answers of a stream."""
        return self.answers + stream

    def own(self, topic: str) -> bool:
        """Whether the bridge itself publishes there."""
        return topic.startswith((self.answers, self.notices))

    @property
    def status(self) -> str:
        """The topic that says whether the bridge is there."""
        return f"{self.answers}$bridge/status"

    @property
    def dead(self) -> str:
        """The topic of messages that could not be read."""
        return f"{self.notices}dead"

    @property
    def refused(self) -> str:
        """The topic of events that got no answer."""
        return f"{self.notices}refused"


def _overlap(subscription: str, prefix: str) -> bool:
    """Whether a filter may match a topic below a prefix."""
    levels = subscription.split("/")
    for place, word in enumerate(prefix.split("/")):
        if place >= len(levels):
            return False
        if levels[place] == "#":
            return True
        if levels[place] not in ("+", word):
            return False
    return True
