"""How a command is stopped: Ctrl-C and SIGTERM end it in order where that is possible, and at once where it is not.

In order means by KeyboardInterrupt in the main thread, so that a command can remove its temporary files and say how to
go on. It is not possible while a module is imported (compiled modules may crash if their start is interrupted), where
Python drops exceptions (in callbacks of the garbage collector), and while a compiled program runs. In the first two
cases the process ends at once, in the last after some seconds or at a second signal.
"""

import contextlib
import os
import select
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any, NoReturn

#: What a message calls the signals, and what handles each of them unless somebody has set another handler.
NAMES = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}
USUAL = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
#: How many seconds a compiled program may delay the end.
GRACE = 5.0


class Stop:
    """The signal that stopped a command. Before one comes it is Ctrl-C, which others may raise as KeyboardInterrupt."""

    def __init__(self) -> None:
        self.number: int = signal.SIGINT
        self.came = False

    @property
    def code(self) -> int:
        """The exit code that a shell gives to a program that the signal ended."""
        return 128 + self.number

    def __str__(self) -> str:
        return f"stopped by {NAMES[signal.Signals(self.number)]}."

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Stop in order, or at once during an import. The next signal ends the process."""
        self.number, self.came = number, True
        for other in USUAL:
            if signal.getsignal(other) == self.handle:
                signal.signal(other, signal.SIG_DFL)
        while frame is not None:
            if frame.f_code.co_filename.startswith("<frozen importlib"):
                self.now()
            frame = frame.f_back
        raise KeyboardInterrupt

    def dropped(self, unraisable: Any) -> None:
        """Stop at once if Python has dropped the KeyboardInterrupt. Other dropped exceptions are shown as usual."""
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            self.now()
        sys.__unraisablehook__(unraisable)

    def late(self, heard: int) -> None:
        """Stop at once if the process still runs some seconds after a signal, or if a second one comes.

        `heard` is a pipe with one byte for each signal. Its end means that the command has ended.
        """
        while (byte := os.read(heard, 1)) and byte[0] not in NAMES:
            pass
        if byte and (not select.select([heard], [], [], GRACE)[0] or os.read(heard, 1)):
            self.number = byte[0]
            self.now()
        os.close(heard)

    def now(self) -> NoReturn:
        """End the process, with a line on stderr."""
        with contextlib.suppress(OSError):
            shown = "\n\x1b[?25h" if os.isatty(2) else ""  # a progress bar hides the cursor of a terminal
            os.write(2, f"{shown}metaprior: {self}\n".encode())
        os._exit(self.code)

    def leave(self, code: int) -> NoReturn:
        """End the process once a stopped command has cleaned up.

        A thread of XLA may still run a program. Python's own end would take away what it uses, and the process crash.
        """
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                stream.flush()
        os._exit(code)


@contextlib.contextmanager
def stop_by_signals(*, own_process: bool) -> Iterator[Stop]:
    """Let Ctrl-C and SIGTERM stop the block. Handlers that somebody else has set are left alone.

    Parameters
    ----------
    own_process : bool
        Whether the process ends with the block. If it does not, signals are left as they are.
    """
    stop = Stop()
    ours = [number for number, usual in USUAL.items() if own_process and signal.getsignal(number) == usual]
    if not ours or sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield stop
        return
    for number in ours:
        signal.signal(number, stop.handle)
    sys.unraisablehook = stop.dropped
    heard, told = os.pipe()
    os.set_blocking(told, False)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    threading.Thread(target=stop.late, args=(heard,), daemon=True).start()
    try:
        yield stop
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        os.close(told)
