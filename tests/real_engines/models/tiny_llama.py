"""A random Llama and adapters as Hugging Face writes them: `python tiny_llama.py FOLDER NAME...`.

Run with the Python of an engine's environment, which has PyTorch, Transformers and safetensors.
The adapters' files are those that `peft` writes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

LAYERS, HIDDEN, RANK = 2, 64, 4
TEXT = ["the quick brown fox jumps over the lazy dog", "an adapter takes a slot, or it waits"]


def model(folder: Path) -> None:
    """Writes the model and a tokenizer that was trained on two lines."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<unk>", "<s>", "</s>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=320, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    ).save_pretrained(folder)
    config = LlamaConfig(
        vocab_size=320,
        hidden_size=HIDDEN,
        intermediate_size=2 * HIDDEN,
        num_hidden_layers=LAYERS,
        # 32 a head: the least that the CPU kernels of vLLM know
        num_attention_heads=HIDDEN // 32,
        num_key_value_heads=HIDDEN // 32,
        max_position_embeddings=4096,
        bos_token_id=1,
        eos_token_id=2,
    )
    torch.manual_seed(7)
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)


def adapter(folder: Path, base: Path) -> None:
    """Writes an adapter of the queries and values."""
    folder.mkdir()
    weights = {}
    for layer in range(LAYERS):
        for part in ("q_proj", "v_proj"):
            name = f"base_model.model.model.layers.{layer}.self_attn.{part}"
            weights[f"{name}.lora_A.weight"] = torch.randn(RANK, HIDDEN) * 0.02
            weights[f"{name}.lora_B.weight"] = torch.randn(HIDDEN, RANK) * 0.02
    save_file(weights, folder / "adapter_model.safetensors")
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": str(base),
        "r": RANK,
        "lora_alpha": 2 * RANK,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": ["q_proj", "v_proj"],
        "inference_mode": True,
    }
    (folder / "adapter_config.json").write_text(json.dumps(config))


if __name__ == "__main__":
    place = Path(sys.argv[1])
    model(place / "model")
    for adapter_name in sys.argv[2:]:
        adapter(place / adapter_name, place / "model")
