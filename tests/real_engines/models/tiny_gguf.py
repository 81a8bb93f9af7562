"""A random Llama and two adapters as GGUF files: `python tiny_gguf.py FOLDER`.

Run with the Python of llama.cpp's environment, which has `gguf` and NumPy. A few hundred kB.
"""

from __future__ import annotations

import sys
from pathlib import Path

import gguf
import numpy as np

LAYERS, HIDDEN, INNER, HEADS, CONTEXT, RANK = 2, 64, 128, 4, 32768, 4
_RANDOM = np.random.default_rng(7)


def _weights(*shape: int) -> np.ndarray:
    return _RANDOM.normal(0, 0.02, shape).astype(np.float32)


def model(file: Path) -> None:
    """Writes the model: bytes as tokens, behind the three that each vocabulary needs."""
    writer = gguf.GGUFWriter(str(file), "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    kinds = [gguf.TokenType.UNKNOWN, *[gguf.TokenType.CONTROL] * 2, *[gguf.TokenType.BYTE] * 256]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(kinds)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_tensor("token_embd.weight", _weights(len(tokens), HIDDEN))
    writer.add_tensor("output.weight", _weights(len(tokens), HIDDEN))
    writer.add_tensor("output_norm.weight", np.ones(HIDDEN, np.float32))
    for layer in range(LAYERS):
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", np.ones(HIDDEN, np.float32))
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", _weights(HIDDEN, HIDDEN))
        for name in ("ffn_gate", "ffn_up"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", _weights(INNER, HIDDEN))
        writer.add_tensor(f"blk.{layer}.ffn_down.weight", _weights(HIDDEN, INNER))
    _finish(writer)


def adapter(file: Path) -> None:
    """Writes an adapter of the queries."""
    writer = gguf.GGUFWriter(str(file), "llama")
    writer.add_type(gguf.GGUFType.ADAPTER)
    writer.add_string(gguf.Keys.Adapter.TYPE, "lora")
    writer.add_float32(gguf.Keys.Adapter.LORA_ALPHA, 8.0)
    for layer in range(LAYERS):
        name = f"blk.{layer}.attn_q.weight"
        writer.add_tensor(f"{name}.lora_a", _weights(RANK, HIDDEN))
        writer.add_tensor(f"{name}.lora_b", _weights(HIDDEN, RANK))
    _finish(writer)


def _finish(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    model(folder / "tiny.gguf")
    adapter(folder / "alpha.gguf")
    adapter(folder / "beta.gguf")
