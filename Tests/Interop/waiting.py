"""Waiting for a condition, to a deadline."""

import os
import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")

#: Everything takes longer on a busy machine; deadlines are multiplied by this.
PATIENCE = float(os.environ.get("MARTLET_TEST_PATIENCE", "1"))


def until(what: str, condition: Callable[[], Value], timeout: float = 30, pause: float = 0.02) -> Value:
    """The first true value of `condition`; fails with `what` once `timeout` seconds have passed."""
    deadline = time.monotonic() + timeout * PATIENCE
    while True:
        if value := condition():
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout:g} s: {what}")
        time.sleep(pause)
