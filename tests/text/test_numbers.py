"""Numbers in one normal form."""

from hypothesis import given
from hypothesis import strategies as st

from engram.text.statements import numbers
from tests.tables import table


def values(text: str) -> list[str]:
    return [str(number) for number in numbers(text)]


@table("text", ["8000", "8,000", "8 000", "8\u202f000", "8'000", "8k", "8K", "8 thousand", "８０００", "٨٠٠٠"])
def test_eight_thousand_is_one_number_however_written(text: str) -> None:
    assert values(f"limit {text}") == ["8000"]


@table(
    ("text", "expected"),
    [
        ("2 min", ["120 s"]),
        ("120 seconds", ["120 s"]),
        ("500ms", ["0.5 s"]),
        ("9pm", ["21:00"]),
        ("9:30 pm", ["21:30"]),
        ("21:30", ["21:30"]),
        ("12am", ["00:00"]),
        ("50%", ["50 %"]),
        ("50 percent", ["50 %"]),
        ("5 MB", ["5 mb"]),
        ("3rd", ["3"]),
        ("-5", ["-5"]),
        ("3-5", ["3", "5"]),
        ("ports 80 443", ["80", "443"]),
        ("v1.2.3", ["1.2.3"]),
        ("2024-05-01", ["2024-05-01"]),
        ("10.0.0.1:80", ["10.0.0.1:80"]),
        ("#123", ["123"]),
    ],
)
def test_units_times_and_versions_have_a_normal_form(text: str, expected: list[str]) -> None:
    assert values(text) == expected


def test_a_version_keeps_its_zero() -> None:
    assert values("3.10") != values("3.1")


def test_numbers_stand_beside_scripts_without_spaces() -> None:
    assert values("端口使用8080和9090端口") == ["8080", "9090"]


@table("text", ["utf8", "sha256", "k8s", "x86_64", "2fa", "4xlarge", "s3", "no digits"])
def test_digits_inside_identifiers_are_no_numbers(text: str) -> None:
    assert values(text) == []


@given(st.text(alphabet="0123456789 .,:-kKmMs%#T/端a_'", max_size=60))
def test_any_run_of_digits_and_signs_can_be_read(text: str) -> None:
    assert all(number.value for number in numbers(text))
