"""Every example of every docstring runs as it stands there."""

import doctest
import pkgutil
from importlib import import_module

import pytest

import einsummable

MODULES = sorted(m.name for m in pkgutil.walk_packages(einsummable.__path__, "einsummable."))


#: Examples that measure something for seconds.
SLOW = {"einsummable.calibration"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in ("einsummable", *MODULES)],
)
def test_examples(name):
    assert doctest.testmod(import_module(name)).failed == 0


def test_the_names_that_a_reader_meets_first_have_examples():
    for name in ("compile", "einsum", "run", "tensor", "to_json", "from_json"):
        found = doctest.DocTestFinder(recurse=False).find(getattr(einsummable, name))
        assert any(test.examples for test in found), name


def test_every_public_name_says_what_it_is():
    for name in einsummable.__all__:
        assert getattr(einsummable, name).__doc__.strip()[0].isupper(), name
    assert set(einsummable.__all__) <= set(dir(einsummable))
