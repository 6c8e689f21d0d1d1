from octopis.broker.clients.answers import Answers
from octopis.core.wire.client import AnswerItem, PublishRequest
from octopis.errors import ConnectionLost, InvalidNotification, InvalidSubscription

TWO = b"\x92\x01\x02"


def publication(number: int) -> PublishRequest:
    return PublishRequest(number, TWO)


def taken(answers: Answers, *numbers: int) -> list[bool]:
    return [answers.takes(publication(number)) for number in numbers]


def said(answers: Answers) -> list[AnswerItem]:
    found, answers._answers = answers._answers, []
    return found


def test_request_that_was_taken_before_a_break_is_answered_and_not_taken_again():
    answers = Answers()
    assert taken(answers, 3, 5, 6) == [True, True, True]
    answers.resume(waiting={6})
    assert taken(answers, 5, 6, 7) == [False, False, True]
    assert said(answers) == [AnswerItem(5)]  # 6 is answered when it has had its turn


def test_numbers_are_as_the_client_likes_while_its_connection_stands():
    answers = Answers()
    assert taken(answers, 9, 1, 1) == [True, True, True]


def test_refusal_and_copies_that_went_nowhere_are_said_again():
    answers = Answers()
    taken(answers, 1, 2, 3)
    answers.answer(1, InvalidNotification("no"))
    answers.answer(2, None, unsent=4)
    answers.answer(3)
    first = said(answers)
    answers.resume(waiting=set())
    taken(answers, 1, 2, 3)
    assert said(answers) == first


def test_answer_that_is_no_more_known_says_so():
    answers = Answers()
    taken(answers, *range(200))
    for number in range(150):
        answers.answer(number, InvalidNotification("no"))
    answers.answer(150, InvalidNotification("n" * 1_000))  # too long to be kept
    for number in range(151, 200):
        answers.answer(number, InvalidSubscription("no", "s"))
    said(answers)
    answers.resume(waiting=set())
    taken(answers, 0, 149, 150, 151)
    first, known, long, fine = said(answers)
    assert known.refusal is not None
    assert known.refusal.error == "InvalidNotification"
    assert fine.refusal is None
    for each in (first, long):
        assert each.refusal is not None
        error = each.refusal.as_error()
        assert isinstance(error, ConnectionLost)
        assert error.publications == 2
