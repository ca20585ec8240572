"""Secrets: found, told from talk about them, cut out and never repeated."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.gates.secrets import assignments, bare_secrets
from engram.gates.secrets.forms import Likeness, changes, likeness
from engram.gates.secrets.scan import find_secrets, redact, secrets_problem, suspects
from engram.model.memory import Anchor, Memory
from tests.gates.samples import made
from tests.tables import table

# (kind, text, the part that must not survive). Pieces are joined so that no scanner takes this file for a leak.
SECRETS = [
    ("aws-access-key", "use AKIA" + "IOSFODNN7TIGERX9 for s3", "IOSFODNN7TIGERX9"),
    ("google-api-key", "maps: AIza" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q", "SyA1b2C3d4"),
    ("github-token", "push with ghp_" + "a1B2" * 9, "a1B2a1B2"),
    ("github-token", "github_pat_" + "11ABCDEFG0" * 4, "11ABCDEFG0"),
    ("gitlab-token", "glpat-" + "xYz123abc456DEF789gh", "xYz123"),
    ("slack-token", "xoxb-" + "123456789012-abcdefABCDEF123456", "abcdefABCDEF"),
    ("slack-webhook", "https://hooks.slack.com/services/" + "T00000000/B00000000/abcdefghijklmnop", "abcdefghijk"),
    ("stripe-key", "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc", "4eC39Hq"),
    ("anthropic-key", "sk-ant-" + "api03-" + "a" * 80, "aaaaaaaa"),
    ("openai-key", "sk-" + "proj-abcdefghijklmnopqrst1234", "abcdefgh"),
    ("npm-token", "npm_" + "Ab1" * 12, "Ab1Ab1"),
    ("pypi-token", "pypi-" + "AgEIcHlwaS5vcmcCJDU3NTc1", "cHlwaS5"),
    ("jwt", "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0In0.abcdefghijklmnop", "eyJzdWIi"),
    ("private-key", "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEabc\n-----END RSA PRIVATE KEY-----", "MIIEabc"),
    ("private-key", "-----BEGIN OPENSSH " + "PRIVATE KEY-----\nb3BlbnNzaC1rZXk", "b3BlbnNz"),
    ("connection-string", "postgres://app:s3cr3t" + "@db.example.com/x", "s3cr3t"),
    ("connection-string", "redis://:hunter2" + "@cache:6379/0", "hunter2"),
    ("azure-account-key", "AccountKey=" + "Ab1/" * 20 + "==;", "Ab1/Ab1/"),
    ("bearer-token", "Authorization: Bearer " + "abcdefghijklmnop1234", "abcdefghijklmnop"),
    ("sql-password", "create user bob identified by " + "tiger", "tiger"),
    ("sql-password", "alter role ci IDENTIFIED BY " + "tiger;", "tiger"),
    ("sql-password", "grant select on x.* to bob identified by " + "tiger", "tiger"),
    ("sql-password", "identified with caching_sha2_password by " + "'tiger'", "tiger"),
    ("command-line-password", "mysql -u root --password " + "hunter22", "hunter22"),
    ("command-line-password", "curl -u admin:" + "hunter2 https://x.example", "hunter2"),
    ("password", "my password is " + "hunter2", "hunter2"),
    ("password", "Password: " + "hunter2", "hunter2"),
    ("password", "the password is " + "swordfish", "swordfish"),
    ("password", "the root password for prod-db-3 is " + "Tr0ub4dor", "Tr0ub4dor"),
    ("password", "pwd=" + "abcd1234;", "abcd1234"),
    ("password", "DB_PASSWORD=" + "correcthorse", "correcthorse"),
    ("password", "密码是" + "abc12345", "abc12345"),
    ("password", "パスワードは" + "abc12345", "abc12345"),
    ("password", "Пароль: " + "qwerty123", "qwerty123"),
    ("password", "Passwort: " + "geheim123", "geheim123"),
    ("password", "Server=db;User Id=sa;Password=" + "P@ssw0rd;", "P@ssw0rd"),
    ("password", "İstanbul password: " + "hunter2", "hunter2"),
    ("pin", "the PIN is " + "4821", "4821"),
    ("token", "token = '" + "abc123def456ghi7'", "abc123def"),
    ("token", "The API key is " + "9f8a7b6c5d4e3f2a1b0c", "9f8a7b"),
    ("token", "client_secret: " + "8Xk2_pQzR7mN4vB1", "8Xk2_pQ"),
    ("token", "the secret key is " + "9f8a7b6c5d4e", "9f8a7b"),
    ("high-entropy-token", "aws_secret_access_key = " + "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalr"),
    ("token", "stripeSecretKey=" + "abCd1234efGh", "abCd1234"),
    ("command-line-password", "mysql -uroot -p" + "S3cretPw99", "S3cretPw99"),
    ("command-line-password", "sshpass -p '" + "S3cretPw99' ssh host", "S3cretPw99"),
    ("command-line-password", "docker login -u bob -p " + "hunter22x", "hunter22x"),
    ("password", "Das Passwort lautet " + "Sommer2024", "Sommer2024"),
    ("password", "the password was changed to " + "Winter2024", "Winter2024"),
    ("password", "user bob, pass " + "Winter2024!", "Winter2024"),
    ("password", "root password " + "Winter2024", "Winter2024"),
    ("password", "pass\u200bword: " + "x1y2z3w4", "x1y2z3w4"),
    ("password", "ｐａｓｓｗｏｒｄ：" + "hunter2hunter2", "hunter2"),
    ("cookie", "Cookie: sessionid=" + "0123456789abcdef" * 2, "0123456789abcdef"),
    ("cookie", "-H 'Cookie: a=b; sid=" + "9f8a7b6c5d4e3f2a; other=1b2c3d4e5f6a7b8c'", "1b2c3d4e"),
    ("password-hash", "bob:$apr1$" + "abcdefgh$0123456789abcdefghijkl", "0123456789"),
    ("password-hash", "$2b$12$" + "a1B2" * 13 + "x", "a1B2a1B2"),
    ("password-hash", "root:$6$" + "saltsalt$" + "aB3/" * 21, "aB3/aB3/"),
    ("seed-phrase", "my seed phrase is " + "abandon " * 11 + "about", "abandon"),
    ("seed-phrase", "mnemonic: " + "legal, winner, thank, year, wave, sausage, worth, " * 2, "sausage"),
    ("stream-key", "rtmp://a.rtmp.example.com/live2/" + "e30r-pyge-bgdh-ejfm-9yij", "pyge-bgdh"),
    ("login-link", "https://portal.example.com/reset/" + "c429300934a159614e7cc20e31a3700c", "c4293009"),
    ("login-link", "https://x.example/einladung/" + "3fa85f64-5717-4562-b3fc-2c963f66afa6", "5717-4562"),
    ("share-link", "https://cloud.example.de/s/" + "LhY3NN1ByTYXjZ1", "LhY3NN1ByTYXjZ1"),
    ("snmp-community", "rwcommunity  " + "gullwing-rw 10.9.0.0/16", "gullwing-rw"),
    ("command-line-password", "openssl enc -aes-256-cbc -k " + "winterfuchs -in a", "winterfuchs"),
    ("command-line-password", "zip -erP " + "mandarin44 backup.zip dir", "mandarin44"),
    ("password", "PDO->__construct('mysql:host=10.8...', 'web', '" + "kiwibaum4')", "kiwibaum4"),
    ("keystore-password", 'ks.load(in, "' + 'kiwibaum4".toCharArray());', "kiwibaum4"),
    ("totp-secret", "Type it into the authenticator: " + "4a2g tzmx ypjl xn32 by3i", "tzmx ypjl"),
    ("safe-combination", "links 34, rechts 11, " + "links 78", "rechts 11"),
    ("pin", "AT+CPIN=" + "9403", "9403"),
    ("password", "Server=a;User Id=app;" + "Pwd=ujmsdWOBs+QEO;Encrypt=True", "ujmsdWOB"),
    ("high-entropy-token", "use secret " + "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXU"),
]


@table(("kind", "text", "value"), SECRETS)
def test_a_secret_is_found_and_cut_out(kind: str, text: str, value: str) -> None:
    redacted, found = redact(text)
    assert kind in [secret.kind for secret in found]
    assert value not in redacted
    assert f"[redacted:{kind}]" in redacted
    assert find_secrets(redacted) == []


@table(
    "text",
    [
        "The password is required",
        "The password must be at least 12 characters",
        "password policy: minimum 12 characters",
        "password: <password>",
        "password=${DB_PASSWORD}",
        "export TOKEN=$TOKEN",
        "password: xxxx",
        "api_key: your-api-key",
        "secret: example",
        "password is [redacted:password]",
        "token: os.environ['X']",
        "Read the token from secrets.GITHUB_TOKEN",
        "Use secrets.token_urlsafe(32)",
        "postgres://user:<password>@host/db",
        "postgresql://localhost:5432/db",
        "Store the password in 1Password",
        "The password is stored in Vault",
        "Passwords are hashed with bcrypt",
        "The token is opaque",
        "token: string",
        "The token expires after 3600 seconds",
        "Token limit is 4096",
        "max_tokens=4096",
        "tokenizer: cl100k_base",
        "num_tokens = 10000000",
        "Never log the api key",
        "Rotate the signing key every 90 days",
        "The access token is refreshed every 15 minutes",
        "The token is passed in the X-Auth-Token header",
        "The secret is patience",
        "The key is to keep functions small",
        "commit 3f2a9b8c7d6e5f4a3b2c1d0e9f8a7b6c5d4e3f2a fixes the token bug",
        "uuid 550e8400-e29b-41d4-a716-446655440000",
        "Secrets live in /run/secrets/db_password",
        "pinned version is 3.2.1",
        "keyboard layout is dvorak",
        "密码必须保密",
        "All tests pass Python3.11 and PostgreSQL16!",
        "pass alice2@Example.com as the sender",
        "mysql -u root -p mydb asks for it",
        "For mysql run docker with -p3306:3306",
        "docker login takes -p too",
        "Disks are identified by serial labels on the bays",
        "Every user is identified by email",
        "Cookie: SameSite=Strict; Secure",
        "password SHA256 hashing",
        "The password is set to expire after 90 days",
        "Das Passwort lautet anders",
        "It costs $5 or $6, not $1,000",
        "The seed phrase must never be stored in plain text because anyone who reads it can take all the coins",
        "The random seed is fixed so that every test run gives the same numbers again and again",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "rtmp://a.rtmp.example.com/live2 is the ingest address",
        "https://docs.example.com/reset-password/how-to-reset-it-in-windows-11",
        "rocommunity public 10.0.0.0/8",
        'char[] alphabet = "ABCDEFGH".toCharArray();',
        "Knit 4 right, 2 left, 8 right, then turn",
        "wpa_passphrase=@@WIFI_KEY@@",
    ],
)
def test_talk_about_secrets_and_placeholders_is_no_secret(text: str) -> None:
    assert find_secrets(text) == []


@table(
    "text",
    [
        "The IBAN in the docs is DE89 3704 0044 0532 0130 00",
        "IBAN sample GB29 NWBK 6016 1331 9268 19",
        "FR14 2004 1010 0505 0001 3M02 606, IBAN d'exemple",
        "El DNI ficticio 12345678Z sirve para las pruebas",
        "Adyen lists card 4111 1111 4555 1142",
        "card 4000 0000 0000 0077 settles at once",
        "SSN 078-05-1120 came with the wallet",
        "The docs use AKIAIOSFODNN7EXAMPLE",
        "genesis address for the parser test, 1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
        "Send it to 0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045",
    ],
)
def test_published_samples_and_public_addresses_are_no_secret(text: str) -> None:
    assert find_secrets(text) == []


@table("text", ["IBAN DE68 2105 0170 0012 3456 78", "card 4539 1488 0343 6467"])
def test_numbers_that_are_not_published_are_secrets(text: str) -> None:
    assert find_secrets(text)


def test_the_reason_names_field_and_kind_and_never_the_secret() -> None:
    value = "hunter" + "2"
    problem = secrets_problem(Memory(id="", statement="fine", rationale=f"the password is {value}"))
    assert "rationale" in problem and "password" in problem and value not in problem


@table(
    "fields",
    [
        {"situation": "when the password is hunter" + "2"},
        {"context": "pwd=" + "abcd1234"},
        {"tags": ("ghp_" + "a1B2" * 9,)},
        {"metadata": {"list": ["sk-ant-" + "a" * 40]}},
        {"form": {"subject": "db", "predicate": "password is", "object": "hunter" + "2"}, "rationale": "pw"},
        {"anchors": (Anchor("x.py", "token = 'abc123def456" + "ghi7'"),)},
    ],
)
def test_no_field_hides_a_secret(fields: dict[str, object]) -> None:
    statement = "db password is hunter" + "2" if "form" in fields else "fine"
    assert secrets_problem(Memory(id="", statement=statement).replace(**fields))


def test_an_empty_password_does_not_take_its_neighbour_for_a_value() -> None:
    assert secrets_problem(Memory(id="", statement="fine", metadata={"password": "", "username": "gertrude"})) == ""


def test_several_secrets_are_each_cut_out() -> None:
    redacted, found = redact("password: hunter" + "2 and token=abcd1234" + "efgh5678 done")
    assert [secret.kind for secret in found] == ["password", "token"]
    assert redacted == "password: [redacted:password] and token=[redacted:token] done"


@given(st.text(max_size=200))
def test_spans_are_in_order_apart_and_inside_the_text(text: str) -> None:
    found = find_secrets(text)
    edges = [edge for secret in found for edge in (secret.start, secret.end)]
    assert edges == sorted(edges)
    assert all(0 <= secret.start < secret.end <= len(text) for secret in found)


@pytest.mark.parametrize(
    "unit", ["password ", "token:", "-----BEGIN PRIVATE KEY-----", "secret A1b2", "a://b:", "eyJa.", "key-"]
)
def test_work_grows_no_faster_than_the_text(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts the characters the value rules look at: a bounded number for each of the text's."""
    looked_at = 0
    judge_value = likeness

    def counted(value: str) -> Likeness:
        nonlocal looked_at
        looked_at += len(value)
        return judge_value(value)

    monkeypatch.setattr(assignments, "likeness", counted)
    text = unit * (50_000 // len(unit))
    find_secrets(text)
    assert looked_at <= 16 * len(text)


@given(st.text(alphabet="pasword: 1xy\u200b\u00adｐａｓｗｏｒｄ：ﬁ㍿", max_size=60))
def test_spans_lead_back_to_the_text_that_was_folded(text: str) -> None:
    secret = "hun" + "ter2x"
    redacted, found = redact(f"{text}\n;\npass\u200bword: {secret}\n;\n{text}")
    assert secret not in redacted
    assert any(one.start == len(text) + 14 and one.end == one.start + len(secret) for one in found)


@table(("kind", "text", "secret"), SECRETS)
@table("place", [0, 1, 2])
def test_a_secret_of_one_memory_is_seen_among_many(kind: str, text: str, secret: str, place: int) -> None:
    # The neighbours end and begin with what could be read as the beginning or the end of something.
    said = ["The commit", "id: the api", "key of the digest"]
    memories = [Memory("", text if number == place else other) for number, other in enumerate(said)]
    assert suspects(memories)
    del memories[place]
    assert not suspects(memories)


@pytest.mark.parametrize(
    "text",
    [
        "log in with unlocking via Xy7!abc9Qr",
        "You log in with authenticate using Xy7!abc9Qr",
        "wifi: guest / wlan:home / S3cretPw99x",
    ],
)
def test_a_harmless_value_does_not_hide_the_password_that_begins_inside_it(text: str) -> None:
    assert [secret.kind for secret in find_secrets(text)] == ["password"]


@pytest.mark.parametrize("name", ["CVC 2023 results.pdf", "project:cvc=2023"])
def test_a_name_is_not_a_card_code(name: str) -> None:
    assert find_secrets(name, nearby=False) == []


def _random(size: int, alphabet: str = "b62") -> str:
    return made(f"{{{alphabet}:{size}}}")


def test_a_random_value_is_a_secret_if_the_sentence_before_is_about_a_login() -> None:
    value = _random(16)
    assert value not in redact(f"I changed the NAS login. From today on we take {value} for it.")[0]
    assert find_secrets(f"I changed the NAS shelf. The label {value} is on it.") == []


def test_a_generated_password_is_a_secret_without_any_word() -> None:
    value = "k7#" + _random(5) + "?Q4!x" + "M9"
    assert [secret.kind for secret in find_secrets(f"try {value} then")] == ["password"]


@pytest.mark.parametrize("word", ["commit", "build", "image", "request", "trace"])
def test_a_random_value_that_a_word_identifies_is_no_secret(word: str) -> None:
    assert find_secrets(f"The login broke with {word} {_random(40, 'hex')} yesterday.") == []


def test_a_certificate_is_public_however_long_it_is() -> None:
    body = "\n".join(_random(64, "b64") for _ in range(20))
    assert find_secrets(f"-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----") == []


def test_twelve_words_of_a_wallet_are_a_seed_phrase_and_eleven_are_not() -> None:
    assert [secret.kind for secret in find_secrets(made("is {bip:12} a poem?"))] == ["seed-phrase"]
    assert list(find_secrets("word " * 200)) == []
    assert find_secrets(made("is {bip:11} a poem?")) == []


def test_every_code_of_a_list_is_cut_out_and_what_follows_is_kept() -> None:
    codes = [_random(5, "hex") + "-" + _random(5, "hex") for _ in range(6)]
    redacted, found = redact("keep these safe\n" + "\n".join(codes) + "\nand buy milk")
    assert len(found) == 6
    assert redacted.endswith("]\nand buy milk")
    assert not any(code in redacted for code in codes)


def test_a_list_of_two_shapes_is_no_list_of_codes() -> None:
    assert find_secrets("save these\n4821-A\nB17\nroom 12-33-1") == []


def test_digits_that_must_not_be_shared_are_a_code() -> None:
    assert [secret.kind for secret in find_secrets("Confirm the transfer with 481930. Do not share it.")] == ["pin"]
    assert find_secrets("Confirm the transfer of 481930 boxes. Do not share it.") == []


def test_a_password_in_braces_ends_where_the_braces_end() -> None:
    value = _random(5) + "}}" + _random(9)
    assert redact("Driver={X};Pwd={" + value + "};Port=1")[0] == "Driver={X};Pwd={[redacted:connection-string]};Port=1"


@pytest.mark.parametrize(
    "unit", ["key A1b2C3d4E5f6G7h8 ", "backup codes ab12-cd34 ", "abandon ", "A1b!", "never share 123456 ", "Pwd={a}}"]
)
def test_each_value_without_a_name_is_looked_at_a_few_times_at_most(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = 0
    judge_value = changes

    def counted(value: str) -> float:
        nonlocal looked_at
        looked_at += len(value)
        return judge_value(value)

    monkeypatch.setattr(bare_secrets, "changes", counted)
    text = unit * (50_000 // len(unit))
    find_secrets(text)
    assert looked_at <= 16 * len(text)
