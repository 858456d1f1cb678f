"""What is wrong with a fit, and what to do about it: `metaprior.diagnose`.

Each check is one file in `checks/`. It looks at a `Subject` (a fitted estimator and rows with their targets) and
returns a `Finding`, or says with a `LeftOut` why it cannot look.
"""

from metaprior.diagnosis.all_checks import diagnose
from metaprior.diagnosis.finding import Diagnosis, Finding, LeftOut

__all__ = ["Diagnosis", "Finding", "LeftOut", "diagnose"]
