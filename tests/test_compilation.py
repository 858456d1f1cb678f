"""How programs are compiled: the quick options where the compiler knows them, none where it does not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from metaprior import compilation
from metaprior.compilation import compiled, one_blas_thread


@pytest.fixture
def asked_anew():
    compilation._options.cache_clear()
    yield
    compilation._options.cache_clear()


def poly(x, power: int):
    return jnp.tanh(x) ** power


def test_a_compiled_function_equals_the_plain_one_and_keeps_its_name():
    program, x = compiled(poly), np.linspace(-1, 1, 7, dtype=np.float32)
    np.testing.assert_allclose(program(x, 3), np.tanh(x) ** 3, rtol=1e-5)
    assert program.__name__ == "poly"


def test_new_values_compile_nothing_new_and_new_shapes_do():
    traced = []

    @compiled
    def program(x):
        traced.append(x.shape)
        return x + 1

    for x in (jnp.zeros(3), jnp.ones(3), jnp.zeros(4)):
        program(x)
    assert traced == [(3,), (4,)]


def test_nothing_is_asked_of_the_backend_before_the_first_call(asked_anew):
    compiled(poly)
    assert compilation._options.cache_info().currsize == 0


def test_an_option_that_the_compiler_does_not_know_is_left_out(asked_anew, monkeypatch):
    monkeypatch.setattr(compilation, "_QUICK", {"xla_no_such_option": False})
    assert compilation._options() == {}
    np.testing.assert_allclose(compiled(poly)(jnp.ones(2), 2), np.tanh(1.0) ** 2, rtol=1e-5)


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="the options are those of a CPU")
def test_this_version_knows_the_options(asked_anew):
    """Where this fails, a new version of XLA has dropped the option: compile times are to be measured again."""
    assert compilation._options() == compilation._QUICK


def _blas_threads() -> list[int]:
    return [library["num_threads"] for library in ThreadpoolController().select(user_api="blas").info()]


def test_blas_has_one_thread_inside_blocks_and_as_many_as_before_after_the_last_of_them():
    """Blocks may overlap, also in other threads."""
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        before = _blas_threads()
        first, second = one_blas_thread(), one_blas_thread()
        first.__enter__()
        second.__enter__()
        assert set(_blas_threads()) == {1}
        first.__exit__(None, None, None)
        assert set(_blas_threads()) == {1}
        second.__exit__(None, None, None)
        assert _blas_threads() == before
