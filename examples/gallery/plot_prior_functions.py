"""
What each kernel says before any data
=====================================

Every panel shows functions drawn from the prior of one and the same network, whose weights are modulated by an input
kernel. Without one, the functions are those of an ordinary network, which bend near zero and flatten out. An RBF lets
them vary everywhere, and a Matern 1/2 makes them rough. With a periodic kernel the weights repeat after a period of 2,
and the ups and downs of the functions with them. The random numbers are the same in all panels, so only the kernel
differs.
"""

import matplotlib.pyplot as plt
import numpy as np

from metaprior import kernels, plots, prior

KERNELS = {
    "no input kernel": None,
    "RBF(1)": kernels.RBF(1.0),
    "Matern12(1)": kernels.Matern12(1.0),
    "Periodic(2)": kernels.Periodic(2.0),
    "RBF(3) * Periodic(2)": kernels.RBF(3.0) * kernels.Periodic(2.0),
    "Linear() + RBF(1)": kernels.Linear() + kernels.RBF(1.0),
}
sizes, x = (1, 20, 1), np.linspace(-4, 4, 120)
latents = prior.draw_latents(sizes, random_state=1)

with plots.style():
    figure, axes = plt.subplots(2, 3, figsize=(9, 5), sharex=True)
    for panel, (name, kernel) in zip(axes.flat, KERNELS.items(), strict=True):
        functions = prior.draw_functions(
            sizes, x, latents, input_kernel=kernel, activation="tanh", num_functions=3, random_state=1
        )
        panel.plot(x, functions[:, :, 0].T, lw=1.3)
        panel.set_title(name)
        panel.set_xticks(range(-4, 5, 2))
    for panel in axes[1]:
        panel.set_xlabel("x")
    for panel in axes[:, 0]:
        panel.set_ylabel("f(x)")
plt.show()
