from octopis.client.address import Backoff


def test_waits_double_up_to_the_most_and_are_spread():
    backoff = Backoff(first_s=0.1, most_s=1.0)
    waits = [backoff.next() for _ in range(8)]
    for wait, full in zip(waits, [0.1, 0.2, 0.4, 0.8, 1, 1, 1, 1], strict=True):
        assert full / 2 <= wait <= full


def test_two_that_failed_together_do_not_come_back_together():
    waits = {Backoff().next() for _ in range(20)}
    assert len(waits) > 1


def test_reset_starts_anew():
    backoff = Backoff(first_s=0.1, most_s=1.0)
    for _ in range(5):
        backoff.next()
    backoff.reset()
    assert backoff.next() <= 0.1
