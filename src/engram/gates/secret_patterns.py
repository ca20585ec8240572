"""What secrets look like: one row per kind, as data.

A row is (kind, hints, pattern). The pattern is tried only when one of the hints, all lower case, occurs in the
lower-cased text, so a long text is read once per hint and not once per pattern. The group `secret` is what is
cut out; without it, the whole match is. No pattern has nested repetition: each is linear.
"""

__all__ = ["KEY_OWNERS", "PATTERNS", "PLACEHOLDERS", "SECRET_WORDS"]

_NOT_BEFORE = r"(?<![A-Za-z0-9_-])"
_END = r"(?![A-Za-z0-9_-])"

_SEED_WORD = r"(?!(?:the|and|for|are|was|not|with|its|any|but|has|our|your|from|which|who|how|does|did|been|were|would|could|should|may|also|very|more|most)\b)[a-z]{3,8}\b"

PATTERNS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "aws-access-key",
        ("akia", "asia", "abia", "acca"),
        rf"{_NOT_BEFORE}(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{{16}}(?![A-Za-z0-9])",
    ),
    ("aws-mws-key", ("amzn.mws.",), r"amzn\.mws\.[0-9a-f-]{36}"),
    ("google-api-key", ("aiza",), rf"{_NOT_BEFORE}AIza[0-9A-Za-z_-]{{35}}(?![0-9A-Za-z_-])"),
    ("google-oauth-secret", ("gocspx-",), r"GOCSPX-[0-9A-Za-z_-]{20,64}"),
    ("google-oauth-token", ("ya29.",), r"ya29\.[0-9A-Za-z_-]{20,2048}"),
    ("azure-account-key", ("accountkey=",), r"(?i:AccountKey)=(?P<secret>[A-Za-z0-9+/]{40,200}={0,2})"),
    ("azure-sas", ("sig=",), r"[?&]sig=(?P<secret>[A-Za-z0-9%+/]{30,200}={0,2})"),
    ("azure-client-secret", ("8q~", "7q~"), rf"{_NOT_BEFORE}[A-Za-z0-9_~.]{{3}}[78]Q~[A-Za-z0-9_~.-]{{31,34}}"),
    ("github-token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), rf"{_NOT_BEFORE}gh[pousr]_[A-Za-z0-9]{{30,255}}"),
    ("github-token", ("github_pat_",), r"github_pat_[A-Za-z0-9_]{22,255}"),
    (
        "gitlab-token",
        ("glpat-", "glrt-", "gldt-", "glptt-", "glcbt-"),
        r"gl(?:pat|rt|dt|ptt|cbt)-[A-Za-z0-9_.-]{18,255}",
    ),
    (
        "slack-token",
        ("xox", "xapp-"),
        rf"{_NOT_BEFORE}(?:xox[abeoprs]-(?:[0-9A-Za-z]{{1,40}}-){{1,6}}[0-9A-Za-z]{{6,255}}|xox[abeoprs]-[0-9A-Za-z]{{10,255}}|xapp-[0-9A-Za-z-]{{20,255}})",
    ),
    (
        "slack-webhook",
        ("hooks.slack.com",),
        r"hooks\.slack\.com/(?:services|workflows)/(?P<secret>[A-Za-z0-9/_-]{20,255})",
    ),
    (
        "discord-webhook",
        ("/api/webhooks/",),
        r"discord(?:app)?\.com/api/webhooks/(?P<secret>\d{10,25}/[A-Za-z0-9_-]{20,255})",
    ),
    (
        "stripe-key",
        ("sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"),
        rf"{_NOT_BEFORE}(?:(?:sk|rk)_(?:live|test)_|whsec_)[A-Za-z0-9]{{10,255}}",
    ),
    ("anthropic-key", ("sk-ant-",), rf"{_NOT_BEFORE}sk-ant-[A-Za-z0-9_-]{{16,255}}"),
    ("openai-key", ("sk-",), rf"{_NOT_BEFORE}sk-(?:(?:proj|svcacct|admin|or-v1)-)?[A-Za-z0-9_-]{{20,255}}"),
    ("huggingface-token", ("hf_",), rf"{_NOT_BEFORE}hf_[A-Za-z0-9]{{30,60}}"),
    ("npm-token", ("npm_",), rf"{_NOT_BEFORE}npm_[A-Za-z0-9]{{36}}"),
    ("npm-token", ("_authtoken",), r"(?i:_authToken)\s{0,4}=\s{0,4}(?P<secret>[^\s\"']{8,255})"),
    ("pypi-token", ("pypi-ageichlwas5vcmc", "pypi-age"), r"pypi-AgE[A-Za-z0-9_-]{16,2048}"),
    ("docker-token", ("dckr_pat_",), r"dckr_pat_[A-Za-z0-9_-]{20,255}"),
    ("sendgrid-key", ("sg.",), rf"{_NOT_BEFORE}SG\.[A-Za-z0-9_-]{{16,64}}\.[A-Za-z0-9_-]{{16,64}}"),
    ("twilio-key", tuple(f"sk{digit:x}" for digit in range(16)), rf"{_NOT_BEFORE}SK[0-9a-f]{{32}}{_END}"),
    ("telegram-token", (":aa",), r"(?<!\d)\d{8,10}:AA[A-Za-z0-9_-]{32,36}"),
    ("mailgun-key", ("key-",), rf"{_NOT_BEFORE}key-[0-9a-f]{{32}}{_END}"),
    ("digitalocean-token", ("dop_v1_", "doo_v1_"), r"do[op]_v1_[0-9a-f]{64}"),
    ("shopify-token", ("shpat_", "shpss_", "shpca_"), r"shp(?:at|ss|ca)_[0-9a-fA-F]{32}"),
    ("databricks-token", ("dapi",), rf"{_NOT_BEFORE}dapi[0-9a-f]{{32}}"),
    ("linear-key", ("lin_api_",), r"lin_api_[A-Za-z0-9]{30,60}"),
    ("groq-key", ("gsk_",), rf"{_NOT_BEFORE}gsk_[A-Za-z0-9]{{40,64}}"),
    ("vault-token", ("hvs.", "hvb."), rf"{_NOT_BEFORE}hv[sb]\.[A-Za-z0-9_-]{{20,255}}"),
    ("age-key", ("age-secret-key-1",), r"AGE-SECRET-KEY-1[0-9A-Z]{40,64}"),
    (
        "jwt",
        ("eyj",),
        rf"{_NOT_BEFORE}eyJ[A-Za-z0-9_-]{{8,4096}}\.eyJ[A-Za-z0-9_-]{{4,8192}}\.[A-Za-z0-9_-]{{10,2048}}",
    ),
    (
        "connection-string",
        ("://",),
        r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{1,30}://[^\s:/@\"'<>]{0,128}:(?P<secret>[^\s/@\"'<>]{1,255})@[^\s@]",
    ),
    ("bearer-token", ("bearer ",), r"(?i:\bbearer) {1,4}(?P<secret>[A-Za-z0-9_.~+/-]{16,4096}={0,2})"),
    (
        "basic-auth",
        ("basic ",),
        r"(?i:authorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?basic) {1,4}(?P<secret>[A-Za-z0-9+/]{8,1024}={0,2})",
    ),
    (
        "netrc-password",
        ("machine ",),
        r"(?i:\bmachine) {1,4}\S{1,255} {1,4}login {1,4}\S{1,255} {1,4}password {1,4}(?P<secret>\S{1,255})",
    ),
    (
        "command-line-password",
        ("--pass", "--token", "--secret", "--api", "--auth"),
        r"(?i:--(?:password|passwd|pass|passphrase|token|secret|api-?key|auth-?token))(?:=| {1,4})[\"']?(?P<secret>[^\s\"'`]{4,255})",
    ),
    (
        "command-line-password",
        ("curl ", "wget "),
        r"(?:\s-u|--user)[ =]{1,4}[\"']?[^\s:\"']{1,128}:(?P<secret>[^\s\"'@]{3,255})",
    ),
    # Behind -p without a blank; 3306:3306 would be docker's ports.
    (
        "command-line-password",
        ("mysql", "mariadb"),
        r"(?i:\b(?:mysql|mariadb)[a-z-]{0,12})\b[^\n|;&]{0,200}?\s-p(?!\d{1,5}(?::\d{1,5})?(?!\S))[\"']?(?P<secret>[^\s\"'`]{4,255})",
    ),
    (
        "command-line-password",
        ("sshpass", "redis-cli", " login "),
        r"(?:\bsshpass\s{1,4}-p|\bredis-cli\b[^\n|;&]{0,100}?\s-a|\b(?:docker|podman|az|oc) login\b[^\n|;&]{0,200}?\s-p(?=\s{1,4}[\"']?[a-z]{0,64}[A-Z0-9]))\s{0,4}[\"']?(?P<secret>[^\s\"'`]{4,255})",
    ),
    # From the first long value with a digit to the end of the header: the cookies behind it are no better.
    (
        "cookie",
        ("cookie",),
        r"(?i:\bcookie)[\"']?\s{0,4}:\s{0,4}[\"']?[^\n\"']{0,200}?=(?P<secret>(?=[^\s;=]{16})(?=[^\s;\d]{0,64}\d)[A-Za-z0-9%._~+/-]{16,4096}[^\n\"']{0,4096})",
    ),
    # "pass" is a verb too, so what follows must look like nothing but a password.
    (
        "password",
        ("pass ", "pw "),
        r"(?i:(?<![a-z0-9_-])(?:pass|pw)) {1,2}[\"'`]?(?P<secret>(?=[^\s]{0,64}[a-z])(?=[^\s]{0,64}[A-Z])(?=[^\s]{0,64}\d)(?=[^\s]{0,64}[!#$%^&*?@])(?![^\s@]{1,64}@[^\s@]{1,64}\.)[A-Za-z0-9!#$%^&*?@._+-]{8,64})(?![^\s\"'`,;.)])",
    ),
    (
        "password",
        ("password ", "passwort ", "kennwort ", "passwd ", "pwd ", "passphrase ", "passcode "),
        r"(?i:pass(?:word|wort|wd|phrase|code)|kennwort|pwd) {1,2}[\"'`]?(?P<secret>(?=[^\s]{0,64}[a-z])(?=[^\s]{0,64}[A-Z])(?=[^\s]{0,64}(?:\d{3}|\d[^\s]{0,64}[!#$%^&*?]|[!#$%^&*?][^\s]{0,64}\d))(?![^\s@]{1,64}@[^\s@]{1,64}\.)[A-Za-z0-9!#$%^&*?@._+-]{8,64})(?![^\s\"'`,;.)])",
    ),
    (
        "password-hash",
        ("$apr1$", "$2a$", "$2b$", "$2x$", "$2y$", "$1$", "$5$", "$6$", "$y$", "$argon2", "$scrypt$"),
        r"\$(?:apr1|[156y]|scrypt|argon2(?:id|i|d))\$[A-Za-z0-9./=,+$-]{20,512}|\$2[abxy]\$\d\d\$[A-Za-z0-9./]{30,64}",
    ),
    # Twelve words and more, none of them one that a sentence needs and the lists of such words lack.
    (
        "seed-phrase",
        ("seed", "mnemonic", "recovery phrase", "recovery words", "backup phrase"),
        rf"(?i:\b(?:(?:seed|recovery|backup)[ -]?(?:phrase|words)|mnemonic(?: (?:phrase|seed|words))?|wallet seed)\b(?:[^\n:=]{{0,40}}?(?:[:=]|\b(?:is|are|was|lautet)\b))?[\s\"'“`(]{{0,4}}(?:1[.)] ?)?(?:{_SEED_WORD}[\s,]{{1,3}}(?:\d\d?[.)] ?)?){{11,23}}{_SEED_WORD})",
    ),
)

# Words whose value is a secret, in the languages people write them in. The second column: a plain lower-case word
# behind "is" is taken for a password too ("the password is swordfish"), since nobody says that of anything else. Each
# begins with a letter of its own, which lets the search skip to it.
SECRET_WORDS: tuple[tuple[str, bool], ...] = (
    (r"pass(?:word|wort|phrase|code|wd)", True),
    (r"pass(?=[:=])(?<![a-z]pass)", True),
    (r"pwd", True),
    (r"kennwort", True),
    (r"mot de passe", True),
    (r"contrase(?:ñ|n)a", True),
    (r"senha", True),
    (r"пароль", True),
    *((word, True) for word in ("密码", "密碼", "口令", "パスワード", "비밀번호", "暗証番号")),
    (r"كلمة (?:المرور|السر)", True),
    (r"secrets?", False),
    (r"token(?!i[sz])s?", False),
    (r"credentials?", False),
    *((word, False) for word in ("密钥", "令牌", "秘钥", "トークン", "токен")),
)

# "key" alone is a word like any other; behind one of these it is a credential.
KEY_OWNERS = (
    "api|access|secret|private|auth|encryption|signing|client|master|license|session|service|account|ssh|deploy"
    "|webhook|shared"
)

PLACEHOLDERS = (
    r"<[^>]{0,80}>?|!(?:vault|ref|env|sub|secret)\b.{0,80}|\$\{?[A-Za-z_(][^\s]{0,80}|%[A-Za-z_]+%|\{\{?.{0,80}|\[.{0,80}|\(.{0,80}"
    r"|[xX*•·.#?_-]{3,}|(?:your|my|the|some|any|a|an|new|old|own)(?:[_ -].{0,80})?|.{0,40}(?:example|placeholder|redacted|changeme|change_me|dummy|sample).{0,40}"
    r"|(?:process\.env|os\.(?:environ|getenv)|env|ENV|getenv|secrets|vars|vault|config|settings|self|op:|arn:|ref:|keyring|file:|ssm:|sm:)\b.{0,120}"
    r"|[A-Za-z_][A-Za-z0-9_.]{0,60}\(.{0,80}|(?:test|foo|bar|baz|todo|tbd|n/a|none|null|nil|true|false|undefined|empty)\b.{0,3}"
)
