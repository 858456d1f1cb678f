"""Every shape in an annotation is checked while the tests run, and compiled programs are kept for the session."""

from jaxtyping import install_import_hook

with install_import_hook("metaprior", "beartype.beartype"):
    import metaprior.estimators
    import metaprior.prior  # noqa: F401
