"""Products in parts are the products: whatever the sizes, up to rounding. No other module multiplies matrices."""

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import engram
from engram.embedding.vectors import EmbedderError, cross_products, dot, multiply, products, scores, unit_rows
from tests.tables import table

PACKAGE = Path(engram.__file__).parent
MAY_MULTIPLY = {PACKAGE / "embedding" / "vectors.py", PACKAGE / "bench" / "figures.py"}
"""The product itself, and the bare NumPy scan that benchmarks compare a search with."""
PRODUCTS = {"dot", "inner", "matmul", "tensordot", "vdot"}


class _FlaggedMatrix:
    """A matrix whose product sets a floating point flag, as OpenBLAS does now and then for finite numbers."""

    def __init__(self, product: float) -> None:
        self.product = product

    def __matmul__(self, other: object) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
        np.sqrt(np.array([-1.0]))
        return np.array([self.product])


def test_a_flag_raised_for_a_finite_product_is_neither_a_warning_nor_an_error() -> None:
    assert dot(_FlaggedMatrix(0.5), None).tolist() == [0.5]


@table("product", [float("nan"), float("inf")])
def test_a_product_that_is_not_finite_is_refused(product: float) -> None:
    with pytest.raises(EmbedderError, match="not finite"):
        dot(_FlaggedMatrix(product), None)


@table("value", [float("nan"), float("inf"), 1e30])
def test_a_vector_without_a_finite_length_is_refused(value: float) -> None:
    rows = np.array([[1.0, 0.0], [value, 0.0]], dtype=np.float32)
    with pytest.raises(EmbedderError, match="row 1"):
        unit_rows(rows)


def test_only_one_module_multiplies_matrices() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in PACKAGE.rglob("*.py")
        if path not in MAY_MULTIPLY
        for line in _product_lines(path)
    ]
    assert not found, f"use engram.embedding.vectors.dot: {found}"


def _product_lines(path: Path) -> Iterator[int]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if (isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult)) or (
            isinstance(node, ast.Attribute) and node.attr in PRODUCTS and ast.unparse(node.value) in ("np", "numpy")
        ):
            yield node.lineno


@table("rows", [0, 1, 1_562, 1_563, 5_000, 16_000])
def test_scores_of_any_number_of_vectors_are_the_product(rows: int) -> None:
    rng = np.random.default_rng(rows)
    matrix, vector = rng.standard_normal((rows, 256), dtype=np.float32), rng.standard_normal(256, dtype=np.float32)
    assert np.allclose(scores(matrix, vector), matrix @ vector, atol=1e-4)


@table(("few", "many"), [(0, 5), (1, 0), (1, 1), (6, 800), (40, 3_000), (2_000, 3)])
def test_products_of_few_rows_and_many_are_the_product(few: int, many: int) -> None:
    rng = np.random.default_rng(few + many)
    rows = rng.standard_normal((few, 256), dtype=np.float32)
    others = rng.standard_normal((many, 256), dtype=np.float32)
    assert np.allclose(products(rows, others), rows @ others.T, atol=1e-4)


@table("rows", [0, 1, 9, 10, 400])
def test_many_rows_times_few_weights_are_the_product(rows: int) -> None:
    rng = np.random.default_rng(rows)
    left = rng.standard_normal((rows, 96), dtype=np.float32)
    weights = rng.standard_normal((96, 288), dtype=np.float32)
    assert np.allclose(multiply(left, weights), left @ weights, atol=1e-4)


@table(("batches", "rows"), [(0, 3), (2, 0), (1, 1), (16, 30), (3, 80)])
def test_each_two_rows_of_a_batch_are_multiplied(batches: int, rows: int) -> None:
    rng = np.random.default_rng(rows)
    given = rng.standard_normal((batches, rows, 256), dtype=np.float32)
    assert np.allclose(cross_products(given), given @ given.transpose(0, 2, 1), atol=1e-4)
