"""The paper, reproduced: its figures and tables, the data they need, and pages of the results.

Installed beside the library, it adds `metaprior reproduce` and `metaprior report` to the command `metaprior`.
"""
