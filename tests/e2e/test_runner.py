"""How tests count, of which some need what is not on every host."""
import run as runner
from lab import Failure, Skipped, check, leave_out


def fails(words):
    raise Failure(words)


def lacks(words):
    raise Skipped(words)


def breaks_in_a_part():
    leave_out("no zsh")
    fails("wrong")


def test_runner__what_is_not_here__is_neither_passed_nor_failed():
    check(runner.outcome(lambda: None) == ("ok", ""), "a test that finds nothing wrong")
    check(runner.outcome(lambda: lacks("no gnuplot")) == ("skipped", "no gnuplot"), "a test that cannot be tried")
    check(runner.outcome(lambda: [leave_out("no zsh"), leave_out("no fish")]) == ("skipped", "no zsh; no fish"), "parts that cannot be tried")
    check(runner.outcome(breaks_in_a_part) == ("FAILED", "wrong"), "what fails is not hidden by a part that cannot be tried")
    check(runner.outcome(lambda: fails("no")) == ("FAILED", "no"), "a failure")
    check(runner.outcome(lambda: 1 // 0)[0] == "FAILED", "a test that breaks")
    check(runner.outcome(lambda: None) == ("ok", ""), "a part of an earlier test counts for this one")


def test_runner__its_exit_code__is_of_what_failed_and_of_no_test_at_all():
    check([runner.exit_code(counts) for counts in ((3, 0, 0), (3, 2, 0), (0, 2, 0), (3, 2, 1), (0, 0, 0))] == [0, 0, 0, 1, 1], "the exit code")
