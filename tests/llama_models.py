"""A tiny LLaMA with random weights, and a forward pass in numpy that shares nothing with ours."""

import json

import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

#: As transformers writes it.
CONFIG = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 29,
    "rms_norm_eps": 1e-6,
    "rope_theta": 500.0,
    "max_position_embeddings": 40,
    "tie_word_embeddings": False,
    "hidden_act": "silu",
}


def weights(config=CONFIG, seed=0):
    """Random matrices ``[out, in]`` by the names of transformers."""
    rng, m, h = np.random.default_rng(seed), config["hidden_size"], config["intermediate_size"]
    inner = m // config["num_attention_heads"] * config["num_key_value_heads"]
    shapes = {"model.embed_tokens": (config["vocab_size"], m), "model.norm": (m,)}
    if not config["tie_word_embeddings"]:
        shapes["lm_head"] = (config["vocab_size"], m)
    for n in range(config["num_hidden_layers"]):
        of = f"model.layers.{n}."
        shapes |= {of + "input_layernorm": (m,), of + "post_attention_layernorm": (m,)}
        shapes |= {of + f"self_attn.{x}_proj": (inner if x in "kv" else m, m) for x in "qkvo"}
        shapes |= {of + f"mlp.{x}_proj": (h, m) for x in ("gate", "up")}
        shapes[of + "mlp.down_proj"] = (m, h)
    return {
        f"{name}.weight": (rng.standard_normal(shape) * shape[-1] ** (-0.5 if len(shape) > 1 else 0)).astype(
            np.float32
        )
        for name, shape in shapes.items()
    }


def write(folder, config=CONFIG, dtype=np.float32, seed=0):
    """Write the model in two shards with an index; return its weights."""
    made = {name: array.astype(dtype) for name, array in weights(config, seed).items()}
    names = sorted(made)
    shards = {"model-00001-of-00002.safetensors": names[::2], "model-00002-of-00002.safetensors": names[1::2]}
    for file, there in shards.items():
        save_file({name: made[name] for name in there}, folder / file)
    index = {name: file for file, there in shards.items() for name in there}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    (folder / "config.json").write_text(json.dumps(config))
    return made


def normed(x, weight, eps):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * weight


def turned(x, frequencies):
    """Turn the first half of the last dimension of x (t, heads, d) against the second."""
    angles = np.outer(np.arange(len(x)), frequencies)[:, None, :]
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate(
        [a * np.cos(angles) - b * np.sin(angles), b * np.cos(angles) + a * np.sin(angles)], -1
    )


def forward(w, tokens, config=CONFIG, frequencies=None):
    """The scores after every token, in float64."""
    w = {name: array.astype(np.float64) for name, array in w.items()}
    heads, groups, eps = (config[f] for f in ("num_attention_heads", "num_key_value_heads", "rms_norm_eps"))
    x = w["model.embed_tokens.weight"][tokens]
    t, m = x.shape
    d = m // heads
    if frequencies is None:
        frequencies = config["rope_theta"] ** -(np.arange(0, d, 2) / d)
    for n in range(config["num_hidden_layers"]):
        of = f"model.layers.{n}."
        a = normed(x, w[of + "input_layernorm.weight"], eps)
        q, k, v = ((a @ w[of + f"self_attn.{y}_proj.weight"].T).reshape(t, -1, d) for y in "qkv")
        q, k = turned(q, frequencies), turned(k, frequencies)
        k, v = (np.repeat(y, heads // groups, axis=1) for y in (k, v))
        scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(d)
        scores = np.where(np.tril(np.ones((t, t), bool)), scores, -np.inf)
        p = np.exp(scores - scores.max(-1, keepdims=True))
        o = np.einsum("hqk,khd->qhd", p / p.sum(-1, keepdims=True), v).reshape(t, m)
        x = x + o @ w[of + "self_attn.o_proj.weight"].T
        f = normed(x, w[of + "post_attention_layernorm.weight"], eps)
        gate = f @ w[of + "mlp.gate_proj.weight"].T
        up = f @ w[of + "mlp.up_proj.weight"].T
        x = x + (gate / (1 + np.exp(-gate)) * up) @ w[of + "mlp.down_proj.weight"].T
    head = w.get("lm_head.weight", w["model.embed_tokens.weight"])
    return normed(x, w["model.norm.weight"], eps) @ head.T


def as_llama2c(config, w):
    """The same model as llama2.c writes it: neighbours are paired, and layers lie together."""
    m, d = config["hidden_size"], config["hidden_size"] // config["num_attention_heads"]

    def layers(name, interleaved=False):
        for n in range(config["num_hidden_layers"]):
            array = w[f"model.layers.{n}.{name}.weight"]
            if interleaved:
                array = array.reshape(-1, 2, d // 2, m).swapaxes(1, 2).reshape(-1, m)
            yield array.tobytes()

    seq = config["max_position_embeddings"]
    header = [m, config["intermediate_size"], config["num_hidden_layers"], config["num_attention_heads"]]
    header += [config["num_key_value_heads"], config["vocab_size"], seq]
    parts = [np.array(header, "<i4").tobytes(), w["model.embed_tokens.weight"].tobytes()]
    parts += layers("input_layernorm")
    parts += layers("self_attn.q_proj", interleaved=True)
    parts += layers("self_attn.k_proj", interleaved=True)
    parts += [*layers("self_attn.v_proj"), *layers("self_attn.o_proj"), *layers("post_attention_layernorm")]
    parts += [*layers("mlp.gate_proj"), *layers("mlp.down_proj"), *layers("mlp.up_proj")]
    parts += [w["model.norm.weight"].tobytes(), bytes(4 * seq * d)]
    return b"".join(parts)


BF16 = ml_dtypes.bfloat16
