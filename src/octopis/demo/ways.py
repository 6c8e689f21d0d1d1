"""Where one notification of the feed goes while the slowed link is overloaded, as a picture."""

from matplotlib.figure import Figure

from octopis.core.model import Notification
from octopis.core.routing import Algorithm
from octopis.core.topology import NamedTopology
from octopis.demo.workload import Feed, SlowedLink
from octopis.explain.explainer import explain
from octopis.explain.pictures import draw_explanation
from octopis.explain.question import AskedSubscriber, Question


def draw_way(topology: NamedTopology, feed: Feed, link: SlowedLink, algorithm: Algorithm) -> Figure:
    """Draw the way of one notification, hop by hop, as the routing core decides."""
    question = Question(
        topology.scot,
        feed.host,
        Notification.checked(feed.example),
        tuple(AskedSubscriber(each.client, each.broker, each.filter) for each in feed.subscribers),
        overloaded=frozenset({(link.source, link.target)}),
    )
    return draw_explanation(explain(question, algorithm), topology.name)
