from octopis.broker.clients.rates import Rates


class Clock:
    now = 50.0

    def __call__(self) -> float:
        return self.now


def test_a_second_s_worth_may_come_at_once_and_what_is_more_has_to_rest():
    clock = Clock()
    rates = Rates(1_000, clock)
    one: object = "one"
    rates.take(one, 1_000)  # type: ignore[arg-type]
    assert rates.rest_s(one) == 0  # type: ignore[arg-type]
    rates.take(one, 500)  # type: ignore[arg-type]
    assert rates.rest_s(one) == 0.5  # type: ignore[arg-type]
    assert rates.rest_s("other") == 0  # type: ignore[arg-type]
    clock.now += 0.5
    assert rates.rest_s(one) == 0  # type: ignore[arg-type]
    rates.take(one, 1)  # type: ignore[arg-type]
    assert rates.rest_s(one) > 0  # type: ignore[arg-type]


def test_what_was_not_used_is_not_saved_up_beyond_a_second():
    clock = Clock()
    rates = Rates(1_000, clock)
    one: object = "one"
    rates.take(one, 10)  # type: ignore[arg-type]
    clock.now += 1_000
    rates.take(one, 3_000)  # type: ignore[arg-type]
    assert rates.rest_s(one) == 2.0  # type: ignore[arg-type]


def test_who_is_gone_is_forgotten():
    rates = Rates(1_000, Clock())
    one: object = "one"
    rates.take(one, 10_000)  # type: ignore[arg-type]
    rates.leave(one)  # type: ignore[arg-type]
    assert rates.rest_s(one) == 0  # type: ignore[arg-type]
