"""Runs that survive being killed: a run as a snapshot, a run put back to where a snapshot was taken."""

import jax
import jax.numpy as jnp
import numpy as np

from metaprior.inference.devices import replicated
from metaprior.inference.identity import Identity
from metaprior.inference.programs import SingleRun
from metaprior.inference.runs import Run
from metaprior.inference.snapshots import CheckpointStore, Snapshot, explained_misfit, filled, numbered


def snapshot_of(program: SingleRun, run: Run) -> Snapshot:
    """Return all that a run needs to go on."""
    rule = run.stop_rule
    arrays = numbered("state", program.state) | numbered("best", None if rule is None else rule.best_model)
    arrays["key"] = np.asarray(jax.random.key_data(run.key))
    terms = {name: values for name, values in run.history().items() if name != "elbo"}
    arrays |= {f"term {name}": values for name, values in terms.items()}
    numbers = {
        "terms": list(terms),  # their order is that of the sum which is the ELBO
        "backoff": run.backoff,
        "roll_backs": run.roll_backs,
        "converged": run.ended is not None and run.ended.converged,
        "rule": {} if rule is None else rule.progress(),
    }
    return Snapshot(arrays, numbers)


def resume_run(known: Snapshot, program: SingleRun, run: Run) -> None:
    """Put a run where a snapshot was taken."""
    state = filled("state", program.state, known.arrays)
    program.state = state if program.mesh is None else replicated(state, program.mesh)
    run.key = jax.random.wrap_key_data(jnp.asarray(known.arrays["key"]), impl=jax.random.key_impl(run.key))
    run.backoff, run.roll_backs = known.numbers["backoff"], known.numbers["roll_backs"]
    terms = {name: known.arrays[f"term {name}"] for name in known.numbers["terms"]}
    run.blocks = [terms] if program.step else []
    if run.stop_rule is not None and known.numbers["rule"]:
        has_best = "best 0" in known.arrays
        best = filled("best", state.model, known.arrays) if has_best else None
        run.stop_rule.resume(known.numbers["rule"], best)
    if known.numbers["converged"]:
        run.end(program.model(0), converged=True)


class CheckpointWriter:
    """Puts a run where its last snapshot was taken, and saves another whenever `every` steps have passed."""

    def __init__(self, store: CheckpointStore, program: SingleRun, run: Run, identity: Identity) -> None:
        """Resume the run if the store has a snapshot."""
        self.store, self.program, self.run, self.identity = store, program, run, identity
        known = store.load(identity)
        if known is not None:
            with explained_misfit():
                resume_run(known, program, run)
        self.last_step, self.last_end = program.step, None if known is None else self._converged()

    def after_block(self) -> None:
        """Save a snapshot if it is time."""
        if self.program.step - self.last_step >= self.store.every:
            self._save()

    def after_run(self) -> None:
        """Save the end of the run, unless the store has it already."""
        if (self.program.step, self._converged()) != (self.last_step, self.last_end):
            self._save()

    def _converged(self) -> bool:
        return self.run.ended is not None and self.run.ended.converged

    def _save(self) -> None:
        self.store.save(self.identity, snapshot_of(self.program, self.run))
        self.last_step, self.last_end = self.program.step, self._converged()
