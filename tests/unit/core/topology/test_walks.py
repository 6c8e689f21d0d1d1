from octopis.core.topology.factors import distances_from, find_cycle

PATH = {"a": ["b"], "b": ["a", "c"], "c": ["b"]}
TRIANGLE_WITH_TAIL = {"t": ["a"], "a": ["t", "b", "c"], "b": ["a", "c"], "c": ["a", "b"]}


def test_distances_count_edges_from_the_source():
    assert distances_from("a", PATH) == {"a": 0, "b": 1, "c": 2}


def test_distances_leave_out_what_cannot_be_reached():
    assert distances_from("a", {"a": [], "b": []}) == {"a": 0}


def test_tree_has_no_cycle():
    assert find_cycle(PATH) is None


def test_cycle_leaves_out_the_tail_that_leads_to_it():
    assert find_cycle(TRIANGLE_WITH_TAIL) == ("a", "b", "c")


def test_cycle_is_found_in_a_part_that_the_first_vertex_does_not_reach():
    assert find_cycle({"x": [], **TRIANGLE_WITH_TAIL}) == ("a", "b", "c")


def test_long_cycle_is_given_in_walking_order():
    ring = {"a": ["b", "e"], "b": ["a", "c"], "c": ["b", "d"], "d": ["c", "e"], "e": ["d", "a"]}
    cycle = find_cycle(ring)
    assert cycle is not None
    assert sorted(cycle) == list("abcde")
    assert all(cycle[place] in ring[cycle[place - 1]] for place in range(5))
