"""A CLIP small enough to make in a test: random weights, a byte-pair tokenizer, 32-pixel images; in both formats.

The forward pass here is written after OpenCLIP's, in plain torch with ``nn.MultiheadAttention`` over the stacked
weights, and shares nothing with the code under test: what both agree on is right twice.
"""

import json
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

DIM, WIDTH, LAYERS, HEADS, SIZE, PATCH, CONTEXT = 16, 32, 2, 4, 32, 8, 12
START, END = "<|startoftext|>", "<|endoftext|>"
MERGES = ["c a", "ca t</w>", "d o", "do g</w>", "p h", "ph o", "pho t", "phot o</w>"]
MEAN, DEVIATION = [0.4, 0.5, 0.6], [0.2, 0.25, 0.3]

State = dict[str, Tensor]


def state(seed: int = 0) -> State:
    """Return random weights under OpenCLIP's names."""
    generator = torch.Generator().manual_seed(seed)

    def tensor(*shape: int, around: float = 0.0) -> Tensor:
        return around + torch.randn(*shape, generator=generator) * 0.3

    found = {
        "logit_scale": torch.tensor(2.6),
        "positional_embedding": tensor(CONTEXT, WIDTH),
        "token_embedding.weight": tensor(len(vocabulary()), WIDTH),
        "text_projection": tensor(WIDTH, DIM),
        "visual.class_embedding": tensor(WIDTH),
        "visual.positional_embedding": tensor((SIZE // PATCH) ** 2 + 1, WIDTH),
        "visual.proj": tensor(WIDTH, DIM),
        "visual.conv1.weight": tensor(WIDTH, 3, PATCH, PATCH),
    }
    norms = ["visual.ln_pre", "visual.ln_post", "ln_final"]
    for block in [f"{tower}.resblocks.{n}" for tower in ("transformer", "visual.transformer") for n in range(LAYERS)]:
        norms += [f"{block}.ln_1", f"{block}.ln_2"]
        shapes = {"attn.in_proj": (3 * WIDTH, WIDTH), "attn.out_proj.": (WIDTH, WIDTH)}
        shapes |= {"mlp.c_fc.": (4 * WIDTH, WIDTH), "mlp.c_proj.": (WIDTH, 4 * WIDTH)}
        for name, shape in shapes.items():
            mark = "" if name.endswith(".") else "_"
            found[f"{block}.{name}{mark}weight"] = tensor(*shape)
            found[f"{block}.{name}{mark}bias"] = tensor(shape[0])
    for norm in norms:
        found[f"{norm}.weight"], found[f"{norm}.bias"] = tensor(WIDTH, around=1.0), tensor(WIDTH)
    return found


def native_folder(
    folder: Path, weights: State, *, quick_gelu: bool = False, weights_name: str = "open_clip_model.safetensors"
) -> Path:
    """Write a checkpoint in OpenCLIP's own format."""
    from safetensors.torch import save_file

    write_tokenizer(folder)
    config = {"model_cfg": architecture(quick_gelu=quick_gelu), "preprocess_cfg": {"mean": MEAN, "std": DEVIATION}}
    (folder / "open_clip_config.json").write_text(json.dumps(config))
    if weights_name.endswith(".safetensors"):
        save_file(weights, folder / weights_name)
    else:
        torch.save({"state_dict": {f"module.{key}": tensor for key, tensor in weights.items()}}, folder / weights_name)
    return folder


def architecture(*, quick_gelu: bool = False) -> dict[str, object]:
    """Return OpenCLIP's configuration of the model."""
    vision = {"image_size": SIZE, "layers": LAYERS, "width": WIDTH, "head_width": WIDTH // HEADS, "patch_size": PATCH}
    text = {
        "context_length": CONTEXT,
        "vocab_size": len(vocabulary()),
        "width": WIDTH,
        "heads": HEADS,
        "layers": LAYERS,
    }
    return {"embed_dim": DIM, "quick_gelu": quick_gelu, "vision_cfg": vision, "text_cfg": text}


def transformers_folder(folder: Path, seed: int = 0) -> Path:
    """Write a checkpoint in Hugging Face's format, made by transformers itself."""
    from transformers import CLIPConfig, CLIPModel

    write_tokenizer(folder)
    shared = {"hidden_size": WIDTH, "intermediate_size": 64, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS}
    words = vocabulary()
    text = shared | {"vocab_size": len(words), "max_position_embeddings": CONTEXT, "bos_token_id": words[START]}
    text["eos_token_id"] = words[END]
    vision = shared | {"image_size": SIZE, "patch_size": PATCH}
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=DIM))
        for parameter in network.parameters():
            nn.init.normal_(parameter, std=0.3)
    network.save_pretrained(folder)
    settings = {"size": {"shortest_edge": SIZE}, "crop_size": {"height": SIZE, "width": SIZE}, "resample": 3}
    settings |= {"image_mean": MEAN, "image_std": DEVIATION, "rescale_factor": 1 / 255}
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))
    return folder


def write_tokenizer(folder: Path) -> None:
    """Write the files of a CLIP tokenizer: all bytes, and a few words."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.json").write_text(json.dumps(vocabulary()), encoding="utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(MERGES) + "\n", encoding="utf-8")
    names = {"bos_token": START, "eos_token": END, "unk_token": END, "pad_token": END}
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "CLIPTokenizer", **names}))


def vocabulary() -> dict[str, int]:
    """Return token to number: bytes, bytes that end a word, merges, and the two marks."""
    from tokenizers.pre_tokenizers import ByteLevel

    letters = sorted(ByteLevel.alphabet())
    tokens = [
        *letters,
        *(letter + "</w>" for letter in letters),
        *(merge.replace(" ", "") for merge in MERGES),
        START,
        END,
    ]
    return {token: number for number, token in enumerate(tokens)}


def text_rows(weights: State, ids: list[list[int]], *, quick_gelu: bool = False) -> NDArray[np.float32]:
    """Return the unit rows of token lists, computed one by one as OpenCLIP does: padded with zeros to the context."""
    rows = []
    for tokens in ids:
        padded = torch.tensor([tokens + [0] * (CONTEXT - len(tokens))])
        seen = functional.embedding(padded, weights["token_embedding.weight"]) + weights["positional_embedding"]
        mask = torch.full((CONTEXT, CONTEXT), float("-inf")).triu(1)
        seen = _norm(weights, "ln_final", _tower(weights, "transformer", seen, mask, quick_gelu=quick_gelu))
        rows.append(seen[0, padded[0].argmax()] @ weights["text_projection"])
    return _unit(rows)


def image_rows(weights: State, pixels: NDArray[np.float32], *, quick_gelu: bool = False) -> NDArray[np.float32]:
    """Return the unit rows of normalised images (n, 3, size, size)."""
    patches = functional.conv2d(torch.from_numpy(pixels), weights["visual.conv1.weight"], stride=PATCH)
    patches = patches.flatten(2).transpose(1, 2)
    first = weights["visual.class_embedding"].expand(len(pixels), 1, -1)
    seen = torch.cat([first, patches], dim=1) + weights["visual.positional_embedding"]
    seen = _tower(weights, "visual.transformer", _norm(weights, "visual.ln_pre", seen), None, quick_gelu=quick_gelu)
    return _unit(list(_norm(weights, "visual.ln_post", seen[:, 0]) @ weights["visual.proj"]))


def _tower(weights: State, tower: str, seen: Tensor, mask: Tensor | None, *, quick_gelu: bool) -> Tensor:
    for number in range(LAYERS):
        block = f"{tower}.resblocks.{number}"
        attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        attention.load_state_dict(
            {
                key.removeprefix(f"{block}.attn."): value
                for key, value in weights.items()
                if key.startswith(f"{block}.attn.")
            }
        )
        normal = _norm(weights, f"{block}.ln_1", seen)
        seen = seen + attention(normal, normal, normal, need_weights=False, attn_mask=mask)[0]
        hidden = _linear(weights, f"{block}.mlp.c_fc", _norm(weights, f"{block}.ln_2", seen))
        hidden = hidden * torch.sigmoid(1.702 * hidden) if quick_gelu else functional.gelu(hidden)
        seen = seen + _linear(weights, f"{block}.mlp.c_proj", hidden)
    return seen


def _norm(weights: State, name: str, seen: Tensor) -> Tensor:
    return functional.layer_norm(seen, (WIDTH,), weights[f"{name}.weight"], weights[f"{name}.bias"])


def _linear(weights: State, name: str, seen: Tensor) -> Tensor:
    return functional.linear(seen, weights[f"{name}.weight"], weights[f"{name}.bias"])


def _unit(rows: list[Tensor]) -> NDArray[np.float32]:
    found: NDArray[np.float32] = functional.normalize(torch.stack(rows), dim=1).detach().numpy()
    return found
