"""The tests of `loop_contract` run once for every variant that a loop's class names."""

import pytest

pytest.register_assert_rewrite("decisions.loop_contract")


def pytest_generate_tests(metafunc):
    if "variant" in metafunc.fixturenames:
        metafunc.parametrize("variant", list(metafunc.cls.variants))
    if "refused" in metafunc.fixturenames:
        metafunc.parametrize("refused", list(metafunc.cls.refusals))
