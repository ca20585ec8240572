"""What recall shows and hands out holds for odd stores, too: other owners, other languages, other times."""

from tests.backends import Backend


def test_what_others_say_decides_no_correction(backend: Backend) -> None:
    with backend.client() as mem:
        mem.add("The Zorblattern harbour has three cranes", source="human", agent_id="other", user_id="eve")
        question = "how many cranes has the zorblatern harbour?"
        alone = mem.search(question, agent_id="other", user_id="eve").warnings
        mem.add("Project Zorblatern launches in May", source="human", agent_id="shop", user_id="ana")
        assert alone == ["Nothing mentions “zorblatern”; searched for “zorblattern”."]
        assert mem.search(question, agent_id="other", user_id="eve").warnings == alone
