"""Decoding with keys and values kept: against reading the whole text at once."""

from dataclasses import replace

import numpy as np
import pytest
from traffic import Traffic, addresses

from einsummable.errors import ShapeError
from einsummable.models import decoding
from einsummable.models.decoder import Decoder
from einsummable.models.llama import Config
from einsummable.models.sampling import Sampler
from einsummable.runtime.cluster import Cluster

SMALL = Config(layers=2, dim=16, heads=4, kv_heads=2, hidden=24, seq=9, vocab=11)
TEXT = [1, 7, 3, 3, 10, 0, 5, 2, 8]


def weights(config=SMALL, seed=0):
    rng = np.random.default_rng(seed)
    return {
        name: (rng.standard_normal([n for _, n in labels]) / labels[0][1] ** 0.5).astype(np.float32)
        for name, labels in decoding.shapes(config).items()
    }


def token_by_token(decoder, text):
    found = [decoder.start([text[:1]])]
    found += [decoder.step([token]) for token in text[1:]]
    return np.concatenate(found)


@pytest.mark.parametrize("sites", [1, 2, 3, 4])
def test_token_by_token_equals_the_whole_text_at_once(sites):
    decoder = Decoder(SMALL, weights(), sites=sites)
    at_once = decoder.start([TEXT], every=True)[0]
    np.testing.assert_allclose(token_by_token(decoder, TEXT), at_once, rtol=1e-4, atol=1e-4)


def test_going_on_after_a_start_equals_the_whole_text():
    decoder = Decoder(SMALL, weights(), sites=2)
    at_once = decoder.start([TEXT], every=True)[0]
    np.testing.assert_allclose(decoder.start([TEXT[:4]])[0], at_once[3], rtol=1e-4, atol=1e-4)
    for n in range(4, len(TEXT)):
        np.testing.assert_allclose(decoder.step([TEXT[n]])[0], at_once[n], rtol=1e-4, atol=1e-4)
    assert decoder.length.tolist() == [len(TEXT)]


def test_texts_of_a_batch_do_not_see_each_other():
    texts = [TEXT[:2], TEXT[:5], TEXT[4:5]]
    batch = Decoder(replace(SMALL, batch=3), weights(), sites=2)
    alone = Decoder(SMALL, weights(), sites=2)
    written = list(zip(*batch.generate(texts, 4), strict=True))
    for text, tokens in zip(texts, written, strict=True):
        assert list(tokens) == [token for (token,) in alone.generate([text], 4)]


def test_what_was_written_before_leaves_no_trace():
    decoder = Decoder(SMALL, weights(), sites=2)
    first = token_by_token(decoder, TEXT)
    np.testing.assert_array_equal(token_by_token(decoder, TEXT), first)


def test_generating_stops_at_an_end_and_where_positions_end():
    decoder = Decoder(SMALL, weights(), sites=1)
    tokens = [token for (token,) in decoder.generate([[1]], 100)]
    assert len(tokens) == SMALL.seq
    cut = tokens.index(tokens[4])
    assert [t for (t,) in decoder.generate([[1]], 100, ends=frozenset([tokens[4]]))] == tokens[:cut]


def test_samplers_of_one_seed_write_one_text():
    decoder = Decoder(SMALL, weights(), sites=1)
    texts = [[t for (t,) in decoder.generate([[1]], 8, Sampler(1.0, seed=s))] for s in (3, 3, 4)]
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([], "0 texts are given to a decoder of 1"),
        ([[]], "a text of 0 tokens does not fit: there are from 1 to 9"),
        ([[1] * 10], "a text of 10 tokens does not fit"),
    ],
)
def test_texts_that_do_not_fit_are_refused(texts, message):
    with pytest.raises(ShapeError, match=message):
        Decoder(SMALL, weights(), sites=1).start(texts)


def test_a_token_that_the_model_does_not_have_is_refused_and_nothing_is_lost():
    decoder, other = (Decoder(SMALL, weights(), sites=2) for _ in range(2))
    for text in ([11], [1, -1]):
        with pytest.raises(ShapeError, match=rf"the token {text[-1]} is none: there are 0 to 10"):
            decoder.start([text])
    decoder.start([[1, 7]])
    with pytest.raises(ShapeError, match="the token 11 is none"):
        decoder.step([11])
    other.start([[1, 7]])
    np.testing.assert_array_equal(decoder.step([3]), other.step([3]))


def test_a_step_beyond_the_last_position_is_refused():
    decoder = Decoder(SMALL, weights(), sites=1)
    decoder.start([TEXT])
    with pytest.raises(ShapeError, match="a text has 9 tokens: the model has no more positions"):
        decoder.step([1])


@pytest.mark.cluster
@pytest.mark.parametrize("engines", [2, 3])
def test_on_a_cluster_weights_are_sent_once_and_keys_and_values_stay(engines, monkeypatch):
    expected = token_by_token(Decoder(SMALL, weights(), sites=1), TEXT)
    with Cluster(n=engines, threads=1) as cluster:
        decoder = Decoder(SMALL, weights(), cluster=cluster)
        np.testing.assert_allclose(token_by_token(decoder, TEXT), expected, rtol=1e-4, atol=1e-4)
        assert decoder.net.last.taskgraph is decoder.net.tasks  # it was never planned again
        traffic = Traffic(cluster, monkeypatch)
        np.testing.assert_allclose(decoder.start([TEXT[:4]])[0], expected[3], rtol=1e-4, atol=1e-4)
        # Tokens and positions go to the engines, maybe to each, and scores come back: no key and no value.
        assert 0 < traffic.data <= engines * 2 * 4 * 4 + 4
        assert traffic.results == 4 * SMALL.vocab
        places = []
        for n in range(4, 8):
            traffic.clear()
            np.testing.assert_allclose(decoder.step(TEXT[n : n + 1])[0], expected[n], rtol=1e-4, atol=1e-4)
            assert 0 < traffic.data <= engines * 8
            assert traffic.results == 4 * SMALL.vocab
            places.append(addresses(cluster))
        # What the start has left is dropped when the first step begins; from there on all grows in place.
        assert places == places[:1] * 4
        assert decoder.net.last.taskgraph is decoder.net.tasks


@pytest.mark.parametrize("sites", [1, 2, 3])
def test_a_step_writes_into_the_memory_of_the_keys_and_values_before(sites):
    decoder = Decoder(SMALL, weights(), sites=sites)
    decoder.start([TEXT[:3]])
    before = dict(decoder._past)
    decoder.step([TEXT[3]])
    assert all(np.shares_memory(decoder._past[name], array) for name, array in before.items())
    for name, array in decoder._past.items():
        assert not array[:, 4:].any(), f"{name} has something where no token was"
        assert array[:, :4].any(axis=(0, 2, 3, 4)).all()
