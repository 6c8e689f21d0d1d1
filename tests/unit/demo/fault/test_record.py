from octopis.core.model import BrokerId
from octopis.demo.fault.cast import Cast
from octopis.demo.fault.record import FaultRecord, Gaps, Received

MS = 1_000_000


def received(record: FaultRecord) -> dict[str, Received]:
    return {each.subscriber.short: each for each in record.received()}


def test_gaps_are_told_by_when_they_end(record: FaultRecord):
    found = received(record)
    assert found["a,0"].gaps == Gaps(before=10.0, dead=30.0, back=50.0)
    assert found["f,2"].gaps == Gaps(before=10.0, dead=10.0, back=10.0)
    assert found["a,0"].is_behind
    assert not found["f,2"].is_behind


def test_losses_are_told_from_the_kill_on(record: FaultRecord):
    found = received(record)
    assert found["c,1"].lost_ns == [0, 10 * MS]
    assert found["c,1"].delivered == 398
    assert found["c,1"].lost_elsewhere == 0
    assert found["d,1"].lost_ns == []


def test_loss_that_the_kill_does_not_explain_is_one_of_its_own(record: FaultRecord):
    record.killed_ns += 1_500 * MS
    assert received(record)["c,1"].lost_elsewhere == 2, "published more than a second before it"
    record.killed_ns -= 7_000 * MS
    assert received(record)["c,1"].lost_elsewhere == 2, "published more than five seconds after it"


def test_what_comes_twice_is_noticed(record: FaultRecord):
    record.got[BrokerId("d", 1)].append((7, record.whole_ns))
    found = received(record)
    assert (found["d,1"].twice, found["d,1"].delivered) == (1, 401)
    assert found["a,0"].twice == 0


def test_deliveries_that_stay_away_have_stopped(record: FaultRecord):
    assert not any(each.has_stopped for each in record.received())
    got = record.got[BrokerId("f", 2)]
    got.pop()
    assert received(record)["f,2"].has_stopped, "the last never came"
    got.append((400, got[-1][1] + 5_001 * MS))
    assert received(record)["f,2"].has_stopped, "it came after far too long"
    record.got[BrokerId("c", 1)].clear()
    assert received(record)["c,1"].has_stopped, "nothing came at all"


def test_gap_so_far_counts_what_goes_on_up_to_the_last_publication(record: FaultRecord):
    assert record.gap_so_far_ms() == 50.0
    for each in record.cast.behind:
        del record.got[each][200:]
    assert record.gap_so_far_ms() == (record.published_ns[-1] - record.got[each][-1][1]) / MS
    record.killed_ns = 0
    assert record.gap_so_far_ms() is None, "nobody was killed yet"


def test_rates_are_over_whole_tenths_of_a_second(record: FaultRecord, cast: Cast):
    begin_ns = record.begin_ns
    assert record.rates(cast.subscribers, begin_ns, begin_ns + 399 * MS) == [40, 40, 40]
    assert record.rates(cast.behind, begin_ns + 1_000 * MS, begin_ns + 1_200 * MS) == [16, 20]
    assert record.rates(cast.behind, begin_ns, begin_ns + 50 * MS) == []
    assert record.delivered == 4 * 400 - 4
