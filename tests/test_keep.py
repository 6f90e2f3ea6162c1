"""Leaving some results on the engines and fetching the others."""

import numpy as np
import pytest

import einsummable as ein
from einsummable.errors import PlanError, UnknownNameError
from einsummable.runtime.session import DistributedTensor

pytestmark = pytest.mark.cluster

X = np.arange(6.0)
#: A and B are one node.
TEXT = "A[i] = X[i] + 1; B[i] = X[i] + 1; C[i] = X[i] * 2; D = X[i]"
EXPECTED = {"A": X + 1, "B": X + 1, "C": X * 2, "D": X.sum()}


@pytest.fixture(scope="module")
def net():
    with ein.Cluster(n=2, threads=1) as cluster:
        yield ein.compile(TEXT, X=X, cluster=cluster)


@pytest.mark.parametrize("keep", [False, True, (), ["A"], ["C", "D"], {"A", "B", "C", "D"}, ("B", "C")])
def test_what_is_named_stays_and_the_rest_is_fetched(net, keep):
    kept = set(EXPECTED) if keep is True else set(keep or ())
    results = net.run(keep=keep)
    assert list(results) == list(EXPECTED)
    assert {name for name, value in results.items() if isinstance(value, DistributedTensor)} == kept
    for name, expected in EXPECTED.items():
        np.testing.assert_array_equal(np.asarray(results[name]), expected)


def test_an_output_that_is_not_there_is_refused(net):
    with pytest.raises(UnknownNameError, match="the program has no output called 'Q'"):
        net.run(keep=["A", "Q"])


@pytest.mark.parametrize("keep", ["A", 1, None])
def test_what_names_no_outputs_is_refused(net, keep):
    with pytest.raises(PlanError, match="keep must be True, False or names of outputs"):
        net.run(keep=keep)


def test_threads_keep_nothing():
    with pytest.raises(PlanError, match="keep leaves results on engines, and this program was compiled for"):
        ein.compile(TEXT, X=X, sites=2).run(keep=True)
