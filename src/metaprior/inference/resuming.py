"""Runs that survive being killed: a run as a snapshot, a run put back to where a snapshot was taken."""

import jax
import jax.numpy as jnp
import numpy as np

from metaprior.inference.devices import replicated
from metaprior.inference.programs import SingleRun
from metaprior.inference.runs import Run
from metaprior.inference.snapshots import CheckpointStore, Snapshot, filled, numbered

#: The names of earlier versions, which their checkpoints hold: how often a run was rolled back, the rule's best model.
ROLL_BACKS, BEST_MODEL = "retreats", "kept"


def snapshot_of(program: SingleRun, run: Run) -> Snapshot:
    """Return all that a run needs to go on."""
    rule = run.stop_rule
    arrays = numbered("state", program.state) | numbered(BEST_MODEL, None if rule is None else rule.best_model)
    arrays["key"] = np.asarray(jax.random.key_data(run.key))
    arrays |= {f"term {name}": values for name, values in run.history().items() if name != "elbo"}
    numbers = {
        "backoff": run.backoff,
        ROLL_BACKS: run.roll_backs,
        "converged": run.ended is not None and run.ended.converged,
        "rule": {} if rule is None else rule.progress(),
    }
    return Snapshot(arrays, numbers)


def resume_run(known: Snapshot, program: SingleRun, run: Run) -> None:
    """Put a run where a snapshot was taken."""
    state = filled("state", program.state, known.arrays)
    program.state = state if program.mesh is None else replicated(state, program.mesh)
    run.key = jax.random.wrap_key_data(jnp.asarray(known.arrays["key"]), impl=jax.random.key_impl(run.key))
    run.backoff, run.roll_backs = known.numbers["backoff"], known.numbers[ROLL_BACKS]
    terms = {name.removeprefix("term "): a for name, a in known.arrays.items() if name.startswith("term ")}
    run.blocks = [terms] if program.step else []
    if run.stop_rule is not None and known.numbers["rule"]:
        has_best = f"{BEST_MODEL} 0" in known.arrays
        best = filled(BEST_MODEL, state.model, known.arrays) if has_best else None
        run.stop_rule.resume(known.numbers["rule"], best)
    if known.numbers["converged"]:
        run.end(program.model(0), converged=True)


class CheckpointWriter:
    """Puts a run where its last snapshot was taken, and saves another whenever `every` steps have passed."""

    def __init__(self, store: CheckpointStore, program: SingleRun, run: Run) -> None:
        """Resume the run if the store has a snapshot."""
        self.store, self.program, self.run = store, program, run
        self.known = store.load()
        if self.known is not None:
            resume_run(self.known, program, run)
        self.last = program.step

    def after_block(self) -> None:
        """Save a snapshot if it is time."""
        if self.program.step - self.last >= self.store.every:
            self._save()

    def after_run(self) -> None:
        """Save the end of the run, unless the store has it already."""
        converged = self.run.ended is not None and self.run.ended.converged
        if self.known is None or self.program.step > self.last or converged != self.known.numbers["converged"]:
            self._save()

    def _save(self) -> None:
        self.store.save(snapshot_of(self.program, self.run))
        self.last = self.program.step
