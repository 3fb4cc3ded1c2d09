"""A tokenizer of whole words, made from the captions of shards: for small models that are trained from nothing.

Words are runs of letters, digits or marks, in lower case; every word of the texts is in the vocabulary, all others are
one mark. Texts stand between a mark of start and one of end, as CLIP's do.
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PAD, UNKNOWN, START, END = "<pad>", "<unknown>", "<start>", "<end>"


def write_word_tokenizer(texts: Iterable[str], folder: Path, max_tokens: int = 77) -> int:
    """Write a tokenizer that `load_tokenizer` takes.

    Args:
        texts: whose words it is to know.
        folder: made when missing.
        max_tokens: what the tower reads, marks included.

    Returns:
        The number of tokens in the vocabulary, the four marks included.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    splitter = pre_tokenizers.Whitespace()
    words = Counter(word for text in texts for word, _ in splitter.pre_tokenize_str(text.lower()))
    # The end mark must not be number 2: transformers takes that for an old config of CLIP, and reads the wrong token.
    vocabulary = {word: number for number, word in enumerate([PAD, UNKNOWN, START, END, *sorted(words)])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = splitter
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{START} $A {END}", special_tokens=[(START, vocabulary[START]), (END, vocabulary[END])]
    )
    marks = {"pad_token": PAD, "bos_token": START, "eos_token": END, "unk_token": UNKNOWN}
    make: Any = PreTrainedTokenizerFast  # has no types
    made = make(tokenizer_object=tokenizer, model_max_length=max_tokens, **marks)
    made.save_pretrained(folder)
    return len(vocabulary)
