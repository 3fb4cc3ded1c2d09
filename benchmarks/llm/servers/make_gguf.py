"""Writes a llama of random weights with a tokenizer of ASCII characters as GGUF; runs in the environment of the server.

python make_gguf.py FILE
"""

import sys

import gguf
import numpy as np

WIDTH, HEADS, INNER, BLOCKS, CONTEXT = 64, 4, 128, 2, 16384
CHAT = "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}\n{% endfor %}<|assistant|>"


def write(path: str) -> None:
    """Write the file."""
    rng = np.random.default_rng(0)
    bytes_ = [9, 10, *range(32, 127)]  # others make texts that are no UTF-8, which the server refuses to return
    words = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in bytes_), "▁"]
    words += [chr(code) for code in range(33, 127)]
    special = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
    rest = len(words) - len(special) - len(bytes_)
    kinds = [*special, *[gguf.TokenType.BYTE] * len(bytes_), *[gguf.TokenType.NORMAL] * rest]

    out = gguf.GGUFWriter(path, "llama")
    out.add_name("random")
    out.add_context_length(CONTEXT)
    out.add_embedding_length(WIDTH)
    out.add_block_count(BLOCKS)
    out.add_feed_forward_length(INNER)
    out.add_head_count(HEADS)
    out.add_head_count_kv(HEADS)
    out.add_layer_norm_rms_eps(1e-5)
    out.add_rope_dimension_count(WIDTH // HEADS)
    out.add_vocab_size(len(words))
    out.add_file_type(gguf.LlamaFileType.ALL_F32)
    out.add_tokenizer_model("llama")
    out.add_token_list(words)
    out.add_token_scores([0.0] * len(words))
    out.add_token_types(kinds)
    out.add_bos_token_id(1)
    out.add_eos_token_id(2)
    out.add_unk_token_id(0)
    out.add_chat_template(CHAT)

    def add(name: str, *shape: int) -> None:
        made = np.ones(shape) if len(shape) == 1 else rng.normal(0, 0.3, shape)
        out.add_tensor(name, made.astype(np.float32))

    add("token_embd.weight", len(words), WIDTH)
    add("output_norm.weight", WIDTH)
    add("output.weight", len(words), WIDTH)
    for block in range(BLOCKS):
        for name in ("attn_norm", "ffn_norm"):
            add(f"blk.{block}.{name}.weight", WIDTH)
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            add(f"blk.{block}.{name}.weight", WIDTH, WIDTH)
        for name in ("ffn_gate", "ffn_up"):
            add(f"blk.{block}.{name}.weight", INNER, WIDTH)
        add(f"blk.{block}.ffn_down.weight", WIDTH, INNER)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


write(sys.argv[1])
