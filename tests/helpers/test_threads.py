"""Kept threads: results in order, nobody at work after an error, new ones in a child, uses that wait for another."""

import multiprocessing
import threading

import pytest

from voronaut.helpers import threads


def test_results_come_in_order_from_threads_that_stay() -> None:
    first, second = (threads.share_out("test", 2, lambda a, b: (a + b, threading.get_ident()), *given)
                     for given in ((range(50), range(50)), (range(3), range(3))))  # fmt: skip
    assert [value for value, _ in first + second] == [*range(0, 100, 2), 0, 2, 4]
    assert len({who for _, who in first + second}) <= 2


def test_an_error_waits_for_everybody_else() -> None:
    failed, done = threading.Event(), []

    def work(which: int) -> None:
        if which == 0:
            failed.set()
            raise ValueError("the first fails")
        failed.wait()
        done.append(which)

    with pytest.raises(ValueError, match="the first fails"):
        threads.share_out("test", 2, work, range(6))
    assert sorted(done) == [1, 2, 3, 4, 5]


def test_parts_of_unequal_length_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        threads.share_out("test", 2, lambda a, b: a + b, [1, 2], [1])


def test_work_may_wait_for_another_use() -> None:
    inner = threads.share_out("outer", 2, lambda n: sum(threads.share_out("inner", 2, abs, range(n))), range(8))
    assert inner == [n * (n - 1) // 2 for n in range(8)]


def in_a_child(answer: "multiprocessing.queues.Queue[list[int]]") -> None:
    answer.put(threads.share_out("test", 2, abs, [-1, -2]))


@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_forked_child_has_threads_of_its_own() -> None:
    threads.share_out("test", 2, abs, [1, 2])
    context = multiprocessing.get_context("fork")
    answer = context.SimpleQueue()
    child = context.Process(target=in_a_child, args=(answer,))
    child.start()
    child.join(30)
    assert not child.is_alive() and answer.get() == [1, 2]
