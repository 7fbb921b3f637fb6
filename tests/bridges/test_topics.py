"""Which stream a topic is of, and that a bridge never hears itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paho.mqtt.client import topic_matches_sub

from sfumato.bridges.bad_messages import BadMessage
from sfumato.bridges.topics import OutTopics, TopicTemplate
from sfumato.core.errors import InvalidParameter

LEVELS = st.sampled_from(["raw", "a", "b", "", "$x", "é"])
TOPICS = st.lists(LEVELS, min_size=1, max_size=5).map("/".join)
TEMPLATES = st.sampled_from(
    ["raw/#", "raw/{stream}", "raw/{stream...}", "raw/+/{stream}", "{stream}/a", "+/{stream}/#"]
)


@given(TEMPLATES, TOPICS)
def test_a_stream_is_read_from_topics_that_the_subscription_matches_alone(
    template: str, topic: str
) -> None:
    found = TopicTemplate.of(template)
    try:
        stream = found.stream(topic)
    except BadMessage:
        return
    assert stream and stream in topic
    # Wildcards at the first level leave out topics of the broker itself.
    assert topic_matches_sub(found.subscription, topic) or topic.startswith("$")


@given(TEMPLATES, st.sampled_from(["raw", "raw/a", "private", "a/b", "x"]), TOPICS)
def test_no_topic_below_an_accepted_prefix_is_subscribed(
    template: str, out: str, stream: str
) -> None:
    found = TopicTemplate.of(template)
    try:
        topics = OutTopics.of(out, "notices", found)
    except InvalidParameter:
        return
    for topic in (topics.answer(stream), topics.status, topics.dead, topics.refused):
        assert not topic_matches_sub(found.subscription, topic)
        assert topics.own(topic)


@pytest.mark.parametrize(
    "text",
    [
        "raw/+",
        "raw/{stream}/{stream}",
        "raw/#/{stream}",
        "raw/{stream...}/a",
        "$x/#",
        "r+/#",
        "$SYS/#",
        "$share/g/raw/#",
    ],
)
def test_a_template_that_names_no_stream_is_refused(text: str) -> None:
    with pytest.raises(InvalidParameter):
        TopicTemplate.of(text)


def test_several_levels_are_one_stream_only_if_that_was_asked() -> None:
    assert TopicTemplate.of("raw/{stream...}").stream("raw/a/b") == "a/b"
    with pytest.raises(BadMessage):
        TopicTemplate.of("raw/#").stream("raw/a/b")
