"""The laws of target routing's rule, each a function of a seed and a rule that may have a fault."""

from random import Random

from octopis.core.model import BrokerId
from octopis.core.routing.algorithms.tnr import plan
from support.target_ways import (
    Journey,
    Rule,
    Ways,
    check_measure_falls,
    check_partition,
    check_served_once,
    check_shortest,
    random_targets,
    random_views,
    random_ways,
)


def begin(seed: int, rule: Rule) -> tuple[Random, Ways, BrokerId, int]:
    """Return a random overlay, who publishes, and the targets."""
    random = Random(seed)  # noqa: S311 - repeatable on purpose
    ways = random_ways(random, rule)
    source = random.choice(ways.scot.brokers)
    return random, ways, source, ways.bits(random_targets(random, ways.scot.brokers))


def check_journey(ways: Ways, journey: Journey, targets: int, living: int) -> None:
    """Check that exactly the living targets are served, once each, and always nearer."""
    check_served_once(journey)
    check_partition(ways, journey, targets)
    check_measure_falls(ways, journey)
    assert ways.bits(journey.served) == living, "a living target was not reached"


def nobody_is_served_twice_whatever_brokers_see(seed: int, rule: Rule = plan) -> Journey:
    random, ways, source, targets = begin(seed, rule)
    journey = ways.travel(source, targets, random_views(ways, random))
    check_served_once(journey)
    check_partition(ways, journey, targets)
    check_measure_falls(ways, journey)
    return journey


def paths_are_shortest_while_all_is_open(seed: int, rule: Rule = plan) -> Journey:
    _, ways, source, targets = begin(seed, rule)
    journey = ways.travel(source, targets)
    check_journey(ways, journey, targets, living=targets)
    check_shortest(ways, source, journey)
    return journey


def overload_changes_ways_but_not_who_is_reached(seed: int, rule: Rule = plan) -> Journey:
    random, ways, source, targets = begin(seed, rule)
    journey = ways.travel(source, targets, lambda broker: ways.jam(random, broker))
    check_journey(ways, journey, targets, living=targets)
    return journey


def living_targets_are_reached_while_others_are_dead(seed: int, rule: Rule = plan) -> Journey:
    """Up to n - 1 are dead, and everybody knows; with or without overload, that stays or not."""
    random, ways, source, targets = begin(seed, rule)
    others = [each for each in ways.scot.brokers if each != source]
    dead = random.sample(others, min(len(others), random.randint(0, ways.width - 1)))
    for each in dead:
        ways.die(each)
    living = targets & ~ways.bits(dead)
    return _travel_under_any_load(random, ways, source, targets, living)


def targets_are_reached_while_links_are_cut(seed: int, rule: Rule = plan) -> Journey:
    """Up to n - 2 links are cut, and both ends know; with or without overload."""
    random, ways, source, targets = begin(seed, rule)
    links = [*ways.scot.acols, *ways.scot.icols]
    count = min(len(links), random.randint(0, max(0, ways.width - 2)))
    for link in random.sample(links, count):
        ways.cut(link.source, link.target)
    return _travel_under_any_load(random, ways, source, targets, targets)


def _travel_under_any_load(
    random: Random, ways: Ways, source: BrokerId, targets: int, living: int
) -> Journey:
    free = ways.travel(source, targets)
    check_journey(ways, free, targets, living)
    ways.jam(random)
    check_journey(ways, ways.travel(source, targets), targets, living)
    journey = ways.travel(source, targets, lambda broker: ways.jam(random, broker))
    check_journey(ways, journey, targets, living)
    return journey
