"""Episode or note, by the first of spec 5's signs that is there."""

from engram.gates.nature import EPISODE, NOTE, nature_of
from tests.tables import table


@table(
    ("text", "type_name", "tags", "expected"),
    [
        ("I prefer tea since yesterday", "preference", (), EPISODE),
        ("The release failed", "preference", (), NOTE),
        ("Ana must sign", "moment", (), EPISODE),
        ("The build failed", "fact", ("policy",), NOTE),
        ("Ana must sign", "fact", ("incident",), EPISODE),
        ("Ana must sign", "fact", ("incident", "policy"), NOTE),
        ("We deployed, as the policy requires", "fact", (), EPISODE),
        ("The policy requires two reviews", "fact", (), NOTE),
        ("The cache is in Frankfurt", "fact", (), EPISODE),
    ],
)
def test_the_first_sign_decides(text: str, type_name: str, tags: tuple[str, ...], expected: str) -> None:
    assert nature_of(text, type_name, tags) == expected
