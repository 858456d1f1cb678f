"""The GP over weight codes, represented by M inducing codes: u = f(C_u), with a whitened q(u).

K_uu = L L', u = L v, q(v) = N(m, T T'), prior p(v) = N(0, I) (paper, section 4.1; with a k_aux block, 4.2). An
inducing code has a block for the input unit, one for the output unit and, in the local model, one for the input.
The kernel is the product over the blocks.
"""

import numpy as np
from jaxtyping import Array, Float

from metaprior.kernels import Kernel
from metaprior.numerics import jittered_inverse_root
from metaprior.types import Leaf
from metaprior.weight_gp.whitened import Whitened


class SparseGP(Whitened):
    """f ~ GP(0, k_in k_out [k_aux]) over codes, known through q(v) at the inducing codes."""

    kernel_in: Kernel
    kernel_out: Kernel
    code_in: Float[Leaf, "M Dz"]
    code_out: Float[Leaf, "M Dz"]
    code_aux: Float[Leaf, "M E"] | None

    @classmethod
    def initial(
        cls,
        kernels: tuple[Kernel, Kernel],
        codes: tuple[np.ndarray, np.ndarray, np.ndarray | None],
        rng: np.random.Generator,
    ) -> "SparseGP":
        """Start from a draw of the prior, because no signal grows from the prior mean, which is zero.

        A local model starts nearer to zero: its biases reach the output directly, and it would learn needless detours.
        """
        code_in, code_out, code_aux = codes
        n_inducing = code_in.shape[0]
        mean = np.asarray((1.0 if code_aux is None else 0.3) * rng.standard_normal(n_inducing))
        return cls(*Whitened.start(mean), *kernels, code_in, code_out, code_aux)

    @property
    def input_codes(self) -> Leaf:
        """U_aux; only a local GP has it."""
        if self.code_aux is None:
            raise ValueError("input_codes: expected a local GP; this GP is global, so its codes have no input block.")
        return self.code_aux

    @property
    def latent_dim(self) -> int:
        """D_z."""
        return self.code_in.shape[1]

    def gram(self, input_kernel: Kernel | None) -> Float[Array, "M M"]:
        """Return K_uu, the element-wise product of the Gram matrices of the blocks."""
        gram = self.kernel_in(self.code_in, self.code_in) * self.kernel_out(self.code_out, self.code_out)
        if input_kernel is not None:
            gram = gram * input_kernel(self.input_codes, self.input_codes)
        return gram

    def inverse_root(self, input_kernel: Kernel | None, jitter: Float[Array, ""]) -> tuple[Array, Array]:
        """Return L^-1 with L L' = K_uu + jitter, and the jitter that was needed. Cost M^3."""
        return jittered_inverse_root(self.gram(input_kernel), jitter)
