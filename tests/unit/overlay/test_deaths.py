from octopis.overlay.deaths import DEATHS_MAX, WITHIN_S, Deaths


def test_each_death_in_a_row_waits_longer_and_then_it_is_enough():
    deaths = Deaths()
    waits = [deaths.next_start_s(float(number)) for number in range(DEATHS_MAX + 1)]
    assert waits == [0.2, 0.4, 0.8, 1.6, 3.2, None]


def test_deaths_of_long_ago_do_not_count():
    deaths = Deaths()
    for number in range(3 * DEATHS_MAX):
        assert deaths.next_start_s(number * WITHIN_S) == 0.2
