"""Models of transformers that generate text: image-text-to-text models (LLaVA, Qwen2.5-VL) and encoder-decoders (T5)."""

from pathlib import Path
from typing import Any, ClassVar, Self, cast

import torch
from torch import Tensor, nn
from transformers import AutoModelForImageTextToText, AutoModelForSeq2SeqLM, AutoProcessor, PreTrainedModel

from pairwright.datasets.errors import UsageError
from pairwright.training.models.checkpoints import explain_unreadable, load_pretrained, read_tokenizer


class GenerativeModel(nn.Module):
    """A model of transformers with its tokenizer or processor, which is None for a model made from a config."""

    kind: ClassVar[str]
    loader: ClassVar[type[Any]]

    def __init__(self, network: PreTrainedModel, processor: Any = None) -> None:
        super().__init__()
        self.network = network
        self.processor = processor

    @classmethod
    def load(cls, name: str, *, dtype: torch.dtype = torch.float32) -> Self:
        """Load a checkpoint by folder or name; errors as of `explain_unreadable`."""
        return cls(load_pretrained(cls.loader, name, dtype=dtype), cls.read_processor(name))

    @classmethod
    def read_processor(cls, name: str) -> Any:
        """Load the tokenizer or processor of the checkpoint ``name``."""
        return read_tokenizer(name)

    def answer(self, inputs: dict[str, Tensor], *, most: int = 64) -> Tensor:
        """Return greedy outputs of at most ``most`` new tokens, int64 (b, n); inputs of a causal model are padded on the left."""
        found = cast("Any", self.network).generate(**inputs, max_new_tokens=most, do_sample=False, num_beams=1)
        assert isinstance(found, Tensor)
        return found

    def save(self, folder: Path) -> None:
        """Write the model as a checkpoint of transformers (safetensors), with its tokenizer or processor."""
        self.network.save_pretrained(folder)
        if self.processor is not None:
            self.processor.save_pretrained(folder)


class EncoderDecoder(GenerativeModel):
    """An encoder-decoder such as T5: the student of Distilling step-by-step (Hsieh, chapter 2)."""

    kind = "student"
    loader = AutoModelForSeq2SeqLM


class ImageTextModel(GenerativeModel):
    """Any image-text-to-text model of transformers, such as LLaVA and Qwen2.5-VL."""

    kind = "image-text"
    loader = AutoModelForImageTextToText

    @classmethod
    def read_processor(cls, name: str) -> Any:
        """Load the processor of the checkpoint ``name``, which has a fast tokenizer."""
        with explain_unreadable(name):
            try:
                processor = AutoProcessor.from_pretrained(name)
            except (ValueError, ImportError, AttributeError) as error:
                if "torchvision" in str(error) or "VIDEO_PROCESSOR_MAPPING" in str(error):
                    raise UsageError(f"the processor of {name} requires torchvision: pip install torchvision") from None
                raise
        if not getattr(getattr(processor, "tokenizer", None), "is_fast", False):
            raise UsageError(f"{name} has no processor of images and texts with a fast tokenizer (tokenizer.json).")
        return processor
