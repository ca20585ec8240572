"""Products in parts are the products: whatever the sizes, up to rounding."""

import numpy as np

from engram.embedding.products import crossed, multiplied, products, scores
from tests.tables import table


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
    assert np.allclose(multiplied(left, weights), left @ weights, atol=1e-4)


@table(("batches", "rows"), [(0, 3), (2, 0), (1, 1), (16, 30), (3, 80)])
def test_each_two_rows_of_a_batch_are_multiplied(batches: int, rows: int) -> None:
    rng = np.random.default_rng(rows)
    given = rng.standard_normal((batches, rows, 256), dtype=np.float32)
    assert np.allclose(crossed(given), given @ given.transpose(0, 2, 1), atol=1e-4)
