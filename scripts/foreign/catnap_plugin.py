"""
A pytest plugin: a test that waits for ever fails after half a minute, and the next one runs. Each outcome is written
to a file, one name to a line, whatever the name has in it.
"""

import os
import signal

import pytest

SECONDS = 30


class TookTooLong(BaseException):
    """Not an Exception, so that no test takes it for a fault of its connection."""


def _on_alarm(number, frame):
    raise TookTooLong(f"not done after {SECONDS} s")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    signal.signal(signal.SIGALRM, _on_alarm)
    yield
    signal.alarm(0)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    signal.alarm(SECONDS)
    outcome = yield
    signal.alarm(0)
    if outcome.excinfo is not None and outcome.excinfo[0] is TookTooLong:
        outcome.force_exception(RuntimeError(str(outcome.excinfo[1])))


def pytest_runtest_logreport(report):
    if report.skipped or (report.passed and report.when != "call"):
        return
    with open(os.environ["CATNAP_OUTCOMES"], "a") as file:
        file.write(f"{report.outcome}\t{report.nodeid}\n")
