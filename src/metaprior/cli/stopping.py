"""How a command is stopped: Ctrl-C and SIGTERM end it in order, and a second signal ends it at once."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

#: What a message calls the signals, and what handles each of them unless somebody has set another handler.
NAMES = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}
USUAL = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


class Stopped(KeyboardInterrupt):
    """A signal asked the command to stop. It leaves by the same way as an error, so temporary files are removed."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {NAMES[signal.Signals(number)]}.")
        #: The exit code that a shell gives to a program that the signal ended.
        self.code = 128 + number


@contextlib.contextmanager
def stop_in_order(*, own_process: bool) -> Iterator[None]:
    """Raise `Stopped` at the first signal inside of the block. Handlers that somebody else has set are left alone.

    Parameters
    ----------
    own_process : bool
        Whether the process ends with the block. If it does, a second signal ends it even after the block.
    """
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield
        return
    ours = [number for number, usual in USUAL.items() if signal.getsignal(number) == usual]
    for number in ours:
        signal.signal(number, _stop)
    try:
        yield
    finally:
        for number in ours:
            stopped = signal.getsignal(number) == signal.SIG_DFL
            if not (own_process and stopped):
                signal.signal(number, USUAL[number])


def _stop(number: int, frame: FrameType | None) -> None:
    for other in USUAL:
        if signal.getsignal(other) == _stop:
            signal.signal(other, signal.SIG_DFL)
    raise Stopped(number)
