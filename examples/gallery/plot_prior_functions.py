"""
What each kernel says before any data
=====================================

Every panel shows functions drawn from the prior of one and the same network, whose weights are modulated by an input
kernel. Without one, the functions are those of an ordinary network: they flatten out or grow where the network
saturates. An RBF lets them vary everywhere, a Matern 1/2 makes them rough, and a periodic kernel makes them repeat.
Sums and products of kernels combine what they say. The unit latents and the random numbers are the same in all
panels, so only the kernel differs.
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
sizes, x = (1, 30, 1), np.linspace(-4, 4, 150)
latents = prior.draw_latents(sizes, random_state=1)

with plots.style():
    figure, axes = plt.subplots(2, 3, figsize=(9, 5), sharex=True, sharey=True)
    for panel, (name, kernel) in zip(axes.flat, KERNELS.items(), strict=True):
        functions = prior.draw_functions(
            sizes, x, latents, input_kernel=kernel, activation="tanh", num_functions=5, random_state=1
        )
        panel.plot(x, functions[:, :, 0].T, lw=1.3)
        panel.set_title(name)
    for panel in axes[1]:
        panel.set_xlabel("x")
    for panel in axes[:, 0]:
        panel.set_ylabel("f(x)")
plt.show()
