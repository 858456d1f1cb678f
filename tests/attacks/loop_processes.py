"""Real processes for attacks on loops. They are forked from one that has imported the library."""

import json
import os
import subprocess
import sys
from pathlib import Path

from attacks import loop_programs

#: After so many seconds a process counts as hanging, and is killed.
HANGING = 60.0


class Processes:
    """A process that makes others, one for every job. What they say of errors goes to an open file."""

    def __init__(self, errors):
        self.errors = errors
        folders = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        self.parent = subprocess.Popen(
            [sys.executable, "-W", "ignore", loop_programs.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
        )

    def run(self, *jobs, killed_after=HANGING):
        """Do all jobs at once, each a program and its arguments; return how each process ended.

        0 stands for a good end and -9 for a killed process. Errors are shown.
        """
        lines = [
            (job[0].__name__, [str(a) if isinstance(a, Path) else a for a in job[1:]], killed_after) for job in jobs
        ]
        self.parent.stdin.write(json.dumps(lines) + "\n")
        self.parent.stdin.flush()
        ended = json.loads(self.parent.stdout.readline())
        self.errors.seek(0)
        assert 1 not in ended, self.errors.read()
        return ended

    def close(self):
        """End the process."""
        self.parent.stdin.close()
        self.parent.wait()
        self.parent.stdout.close()
