"""The real model writes the text that llama2.c writes, wherever it runs."""

from pathlib import Path

import llama_models
import numpy as np
import pytest

from einsummable import cli
from einsummable.models import checkpoint, tokenizer
from einsummable.models.decoder import Decoder

DATA = Path(__file__).parents[2] / "shared" / "data"
MODEL, TOKENIZER = DATA / "stories260K.bin", DATA / "tok512.bin"

needs_data = pytest.mark.skipif(not MODEL.exists(), reason=f"{MODEL} is not there")


def written(capsysbinary, *options):
    status = cli.main(["generate", str(MODEL), "--tokenizer", str(TOKENIZER), *options])
    out, err = capsysbinary.readouterr()
    assert (status, err) == (0, b"")
    return out


@needs_data
@pytest.mark.slow
@pytest.mark.parametrize("where", [["--sites", n] for n in "1234"], ids=" ".join)
def test_the_text_is_that_of_llama2c(capsysbinary, where):
    assert written(capsysbinary, *where) == (DATA / "stories260K.expected.txt").read_bytes()


@needs_data
@pytest.mark.cluster
def test_the_text_is_that_of_llama2c_on_two_engines(capsysbinary):
    found = written(capsysbinary, "--engines", "2")
    assert found == (DATA / "stories260K.expected.txt").read_bytes()


@needs_data
@pytest.mark.slow
def test_a_prompt_goes_on_as_it_did():
    text = (DATA / "stories260K.expected.txt").read_text()
    words = tokenizer.load(TOKENIZER)
    tokens = words.encode(text)
    assert words.decode(tokens) == text
    model = checkpoint.load(MODEL)
    decoder = Decoder(model.config, model.weights, sites=2)
    at_once = decoder.start([tokens], every=True)[0]
    one_by_one = [decoder.start([tokens[:1]]), *(decoder.step([t]) for t in tokens[1:])]
    np.testing.assert_allclose(np.concatenate(one_by_one), at_once, rtol=1e-4, atol=1e-4)


@needs_data
@pytest.mark.slow
def test_a_prompt_is_part_of_the_text_and_a_seed_repeats_it(capsysbinary):
    options = "--prompt", "Tom had a cat", "--steps", "20", "--temperature", "0.9", "--top-p", "0.9", "--seed"
    first, again, other = (written(capsysbinary, *options, seed) for seed in ("1", "1", "2"))
    assert first.startswith(b"Tom had a cat")
    assert first == again != other


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["nothing.bin", "--tokenizer", "tok.bin"], "nothing.bin cannot be read"),
        (["MODEL", "--tokenizer", "nothing"], "nothing cannot be read"),
        (["MODEL"], "no tokenizer is given"),
        (["MODEL", "--tokenizer", "TOKENIZER", "--steps", "0"], "--steps is a whole number from 1, not 0"),
        (["MODEL", "--tokenizer", "TOKENIZER", "--temperature", "-1"], "a temperature is a number from 0"),
        (["MODEL", "--tokenizer", "TOKENIZER", "--top-p", "2"], "top_p is above 0 and at most 1"),
        (["MODEL", "--tokenizer", "TOKENIZER", "--sites", "0"], "sites must be a whole number from 1"),
        (["MODEL", "--tokenizer", "TOKENIZER", "--prompt", "a" * 2000], "the model has 512 positions"),
    ],
)
def test_what_is_wrong_goes_to_standard_error(capsys, options, message):
    if "MODEL" in options and not MODEL.exists():
        pytest.skip(f"{MODEL} is not there")
    real = {"MODEL": str(MODEL), "TOKENIZER": str(TOKENIZER)}
    assert cli.main(["generate", *(real.get(option, option) for option in options)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err


def test_a_folder_of_transformers_has_its_tokenizer(tmp_path, capsys):
    tokenizers = pytest.importorskip("tokenizers", reason="the package tokenizers is not installed")
    llama_models.write(tmp_path, dtype=llama_models.BF16)
    letters = {c: i for i, c in enumerate("▁abcdefghijklmnopqrstuvwxyz", 2)}
    made = tokenizers.Tokenizer(tokenizers.models.BPE({"<s>": 0, "</s>": 1, **letters}, []))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    made.decoder = tokenizers.decoders.Metaspace()
    made.add_special_tokens(["<s>", "</s>"])
    made.save(str(tmp_path / "tokenizer.json"))
    assert cli.main(["generate", str(tmp_path), "--prompt", "hello you", "--steps", "5", "--sites", "2"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("hello you")
    assert len(out) == len("hello you") + 5
    assert err == ""
