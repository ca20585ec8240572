"""Secrets told by what they stand in: a URL, a command line, a header, a line of a configuration file.

Rows as in `secret_formats`. A placeholder in the `secret` group is no secret.
"""

__all__ = ["PATTERNS"]

Row = tuple[str, tuple[str, ...], str]

_SEED_WORD = r"(?!(?:the|and|for|are|was|not|with|its|any|but|has|our|your|from|which|who|how|does|did|been|were|would|could|should|may|also|very|more|most|must|never|into|them|they|this|that|these|those)\b)[a-z]{3,8}\b"
_Q = r"[\"'`]?"

PATTERNS: tuple[Row, ...] = (
    # addresses
    (
        "connection-string",
        ("://",),
        r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.:-]{1,40}://[^\s:/@\"'<>]{0,128}:(?P<secret>[^\s/\"'<>]{1,255})@[^\s@/:]",
    ),
    (
        "connection-string",
        ("://",),
        r"://(?P<secret>(?=[A-Za-z_-]{0,64}\d)[A-Za-z0-9_-]{20,255})(?::x-oauth-basic)?@(?:[\w-]+\.)+[a-z]{2,}",
    ),
    ("connection-string", ("jdbc:oracle",), r"jdbc:oracle:\w{2,6}:[^\s/]{1,64}/(?P<secret>[^\s@]{2,64})@"),
    (
        "signed-url",
        ("signature=", "x-amz-security-token="),
        r"(?i:[?&](?:X-(?:Amz|Goog)-Signature|Signature|X-Amz-Security-Token))=(?P<secret>[A-Za-z0-9%~_-]{24,2048})",
    ),
    (
        "url-key",
        ("key=", "appid=", "apikey=", "auth=", "pass="),
        r"[?&](?i:api[_-]?key|apikey|key|appid|app_key|auth|pass|pwd|access_key|subscription-key|code)=(?P<secret>(?=[^\s&\"'#]{0,64}\d)(?=[^\s&\"'#]{0,64}[A-Za-z])[^\s&\"'#<>]{16,512})",
    ),
    # headers
    (
        "bearer-token",
        ("bearer ",),
        r"(?i:\bbearer) {1,4}(?P<secret>(?=[A-Za-z_.~+/-]{0,400}\d|[A-Za-z0-9_.~+/-]{32})[A-Za-z0-9_.~+/-]{16,4096}={0,2})",
    ),
    (
        "basic-auth",
        ("basic ",),
        r"(?i:authorization[\"'\\]{0,3}\s{0,4}[:=]\s{0,4}[\"'\\]{0,3}basic) {1,4}(?P<secret>[A-Za-z0-9+/]{8,1024}={0,2})",
    ),
    (
        "authorization",
        ("authorization",),
        r"(?i:authorization[\"'\\]{0,3}\s{0,4}[:=]\s{0,4}[\"'\\]{0,3}(?:token|apikey|api-key|key|bot|digest|negotiate|ntlm|sso-key|genie(?:key)?|klaviyo-api-key|snowflake|splunk|discogs|hmac|oauth|pve(?:api)?token=?)) {0,4}(?P<secret>(?=[^\s\"']{0,200}\d)[^\s\"',;]{8,2048})",
    ),
    (
        "authorization",
        ("x-", "ocp-apim", "private-token", "api-key", "apikey"),
        r"(?i:(?<![\w-])(?:x-[a-z0-9-]{0,40}(?:key|token|auth|secret|signature)|ocp-apim-subscription-key|private-token|job-token|api-?key|dd-(?:api|application)-key|circle-token|authorization))[\"']?\s{0,3}:\s{0,3}[\"']?(?P<secret>(?=[^\s\"']{0,200}\d)[A-Za-z0-9_.~+/=|:-]{12,2048})",
    ),
    ("aws-signature", ("signature=",), r"AWS4-HMAC-SHA256[^\n]{0,400}?Signature=(?P<secret>[0-9a-f]{64})"),
    (
        "cookie",
        ("cookie",),
        r"(?i:cookie)[\"']?\s{0,4}[:=]\s{0,4}[\"']?[^\n\"']{0,200}?=(?P<secret>(?=[^\s;=]{16})(?=[^\s;\d]{0,64}\d)[A-Za-z0-9%._~+/-]{16,4096}[^\n\"']{0,4096})",
    ),
    (
        "cookie",
        ("sessid", "sessionid", "session_id", "connect.sid", "_session", "auth_token", "remember_"),
        r"(?i:(?<![\w.])(?:[\w.-]{0,20}sess(?:ion)?_?id|connect\.sid|[\w.-]{1,20}_session|remember_(?:web|token|me)\w{0,60}))=(?P<secret>(?=[^\s;\d]{0,64}\d)[A-Za-z0-9%._~+/=-]{16,1024})",
    ),
    # files
    (
        "netrc-password",
        ("machine ", "login "),
        r"(?i:\b(?:machine\s{1,8}\S{1,255}\s{1,12})?login\s{1,8}\S{1,255}\s{1,12}password\s{1,8})(?P<secret>\S{1,255})",
    ),
    (
        "pgpass-line",
        (":",),
        r"(?m:^)[ \t>]{0,4}(?:\*|localhost|(?=[\w-]{0,60}[g-z.])[\w.-]{3,80}|\d{1,3}(?:\.\d{1,3}){3}):(?:\d{2,5}|\*):[\w*-]{1,63}:[\w*.@-]{1,63}:(?P<secret>[^\s:]{4,128})[ \t]{0,4}(?m:$)",
    ),
    (
        "docker-auth",
        ('"auth"', "'auth'", "identitytoken", '\\"auth'),
        r"[\\\"']{1,3}(?:auth|identitytoken|registrytoken)[\\\"']{1,3}\s{0,4}:\s{0,4}[\\\"']{1,3}(?P<secret>(?=[^\"']{0,60}[A-Z0-9=])[A-Za-z0-9+/._-]{12,2048}={0,2})",
    ),
    (
        "kubeconfig",
        ("client-key-data",),
        r"client-key-data[\"']?\s{0,3}:\s{0,3}[\"']?(?P<secret>[A-Za-z0-9+/=]{40,20000})",
    ),
    (
        "kubernetes-secret",
        ("kind: secret", '"kind": "secret"', '"kind":"secret"'),
        r"(?s)kind[\"']?: ?[\"']?Secret\b.{0,600}?\b(?:data|stringData)[\"']?:\s{0,8}\{?\s{0,8}[\w.\"'-]{1,64}:\s{0,4}[\"']?(?P<secret>[^\s\"'{}<$]{4,4096})",
    ),
    ("shadow-line", (":$",), r"(?m:^)[a-z_][\w-]{0,31}:(?P<secret>\$[\w./$=,+-]{8,200}):"),
    ("htpasswd-line", (":{sha", ":$apr1"), r"(?m:^)[\w.@-]{1,64}:(?P<secret>(?:\{SHA\}|\$apr1\$)\S{10,80})"),
    ("smb-hash", (":::",), r"[\w.$-]{1,64}:\d{1,6}:[0-9a-fA-F]{32}:(?P<secret>[0-9a-fA-F]{32}):::"),
    (
        "redis-password",
        ("requirepass", "masterauth", "primaryauth"),
        r"(?i:\b(?:requirepass|masterauth|primaryauth))\s{1,4}[\"']?(?P<secret>[^\s\"']{4,255})",
    ),
    (
        "wpa-passphrase",
        ("psk=", "wpa_passphrase=", "psk ="),
        r"(?i:\b(?:psk|wpa_passphrase|wpa-psk|sae_password)\s?=\s?)[\"']?(?P<secret>[^\s\"']{8,64})",
    ),
    ("wpa-passphrase", ('psk="',), r"psk=\"(?P<secret>[^\"\n]{8,63})\""),
    (
        "snmp-community",
        ("community",),
        r"(?i:snmp-server community)\s{1,3}(?P<secret>(?!public\b|private\b)\S{4,64})|(?i:snmp\w{0,6} .{0,40}-c )(?!public\b|private\b)\S{4,64}",
    ),
    (
        "cisco-password",
        ("password ", "secret ", "key "),
        r"(?i:\b(?:enable|username \S{1,32}|line \S{1,12}|tacacs-server|radius-server|neighbor \S{1,40})\s(?:\w{1,12}\s){0,2}(?:password|secret|key)\s{1,2}(?:[05789]\s{1,2})?)(?P<secret>(?=[^\s]{0,64}[\dA-Z$])[^\s]{4,128})",
    ),
    ("junos-secret", ("$9$", "$8$"), r"\$[89]\$[A-Za-z0-9./$+-]{8,128}"),
    (
        "sql-password",
        ("identified by", "identified with"),
        r"(?i:identified\s{1,4}(?:with\s{1,4}\S{1,40}\s{1,4})?by\s{1,4}(?:password\s{1,4})?)[\"']?(?P<secret>[^\s\"';]{3,255})",
    ),
    (
        "sql-password",
        ("password '", "password ='", "password = '", "password=n'", "with password"),
        r"(?i:\bpassword\s{0,2}=?\s{0,2}N?)'(?P<secret>[^'\n]{4,128})'",
    ),
    # command lines
    (
        "command-line-password",
        (
            "--pass",
            "--token",
            "--secret",
            "--api",
            "--auth",
            "-pass",
            "--http-pass",
            "--proxy-pass",
            "--key",
            "--access-key",
            "--pwd",
            "--client-secret",
            "--with-token",
            "--pat",
            "--admin-pass",
            "--db-pass",
            "--root-pass",
        ),
        r"(?i:--?[a-z][a-z-]{0,30}?(?:password|passwd|pwd|passphrase|token|secret|api-?key|access-?key|auth-?key|secret-?key)|--(?:pass|pat|auth|key|pwd)|-(?:storepass|keypass|srcstorepass|deststorepass|passin|passout|passwd|password|pass))(?:=| {1,4})(?:pass:)?[\"']?(?P<secret>[^\s\"'`]{4,255})",
    ),
    (
        "command-line-password",
        ("curl ", "wget ", "http ", "https ", "ab "),
        r"(?:\s-u|--user|\s-a|\s-A|--proxy-user|\s-U)[ =]{1,4}[\"']?[^\s:\"']{1,128}:(?P<secret>[^\s\"'@]{3,255})",
    ),
    # Behind -p without a blank; 3306:3306 would be docker's ports.
    (
        "command-line-password",
        ("mysql", "mariadb", "mongo", "7z ", "7za ", "unrar", "rar "),
        r"(?i:\b(?:mysql|mariadb|mongo|7z|7za|unrar|rar)[a-z-]{0,12})\b[^\n|;&]{0,200}?\s-p(?!\d{1,5}(?::\d{1,5})?(?!\S))[\"']?(?P<secret>[^\s\"'`]{4,255})",
    ),
    (
        "command-line-password",
        (
            "sshpass",
            "redis-cli",
            " login ",
            "mongosh",
            "mongodump",
            "mongorestore",
            "mongoexport",
            "sqlcmd",
            "bcp ",
            "isql",
            "cqlsh",
            "influx",
        ),
        r"(?:\bsshpass\s{1,4}-p|\bredis-cli\b[^\n|;&]{0,100}?\s-a|\b(?:docker|podman|az|oc|skopeo|helm registry|buildah|nerdctl|crane auth) login\b[^\n|;&]{0,200}?\s-p(?=\s{1,4}[\"']?[a-z]{0,64}[A-Z0-9])|\b(?:mongosh|mongodump|mongorestore|mongoexport|cqlsh|influx|isql)\b[^\n|;&]{0,200}?\s-p|\b(?:sqlcmd|bcp)\b[^\n|;&]{0,200}?\s-P)\s{0,4}[\"']?(?P<secret>[^\s\"'`]{4,255})",
    ),
    (
        "command-line-password",
        (
            "zip -",
            "unzip",
            "ldap",
            "mosquitto",
            "ipmitool",
            "impacket",
            "crackmapexec",
            "xfreerdp",
            "rdesktop",
            "net user",
            "net use",
            "smbclient",
            "mount ",
            "htpasswd",
            "expect",
            "gpg",
            "ftp",
            "plink",
            "pscp",
            "winscp",
        ),
        r"(?:\b(?:un)?zip\b[^\n|;&]{0,80}?\s-P\s{0,2}|\bldap\w{2,10}\b[^\n|;&]{0,200}?\s-w\s{0,2}|\bmosquitto_\w{3}\b[^\n|;&]{0,200}?\s-P\s{0,2}|\bipmitool\b[^\n|;&]{0,120}?\s-P\s{0,2}|\bxfreerdp\b[^\n]{0,200}?/p:|\brdesktop\b[^\n]{0,100}?\s-p\s{0,2}|\bnet user\s{1,2}\S{1,40}\s{1,2}|\bsmbclient\b[^\n]{0,120}?-U\s{0,2}[^\s%]{1,64}%|[,\s](?:password|pass)=|\bhtpasswd\s{1,2}-\w{0,4}b\w{0,4}\s{1,2}\S{1,120}\s{1,2}\S{1,64}\s{1,2}|\b(?:plink|pscp)\b[^\n]{0,80}?\s-pw\s{1,2})[\"']?(?P<secret>(?![-/])[^\s\"'`,]{4,255})",
    ),
    (
        "command-line-password",
        ("chpasswd", "passwd --stdin", "sudo -s", "| su ", "cryptsetup", "docker login", "kinit", "gh auth"),
        r"\b(?:echo|printf)\s{1,3}(?:-n\s{1,2})?[\"']?(?:[\w.-]{1,32}:)?(?P<secret>[^\s\"'|$]{4,128})[\"']?\s{0,3}\|\s{0,3}(?:sudo (?:-\w{1,3} )?)?(?:chpasswd|passwd|sudo|su|cryptsetup|docker login|kinit|gh auth|vault|gpg)",
    ),
    ("command-line-password", ("--from-literal",), r"--from-literal[= ][\"']?[\w.-]{1,64}=(?P<secret>[^\s\"']{4,512})"),
    (
        "command-line-password",
        (
            "vault kv put",
            "vault write",
            "aws configure set",
            "git config",
            "heroku config",
            "gh secret set",
            "wrangler secret",
            "fly secrets set",
            "flyctl secrets",
            "pulumi config set",
            "npm config set",
            "setx ",
            "doppler secrets set",
            "firebase functions:config",
        ),
        r"\b(?:vault (?:kv put|write) \S{1,120}|fly(?:ctl)? secrets set|heroku config:set|doppler secrets set|setx|pulumi config set --secret|firebase functions:config:set)\s{1,3}[\w.:/-]{1,64}[= ](?P<secret>(?=[^\s\"']{0,64}[\dA-Z!@#$%])[^\s\"'<$]{6,512})",
    ),
    (
        "command-line-password",
        (" -p ",),
        r"\s-[uU][ =]?\S{1,64}[^\n|;&]{0,80}?\s-[pP][ =](?P<secret>(?=\S{0,64}\d)(?=\S{0,64}[A-Z!@#$%])(?=\S{0,64}[a-z])\S{6,128})",
    ),
    # "pass" is a verb too, so what follows must look like nothing but a password.
    (
        "password",
        ("pass ",),
        r"(?i:(?<![a-z0-9_-])pass) {1,2}[\"'`]?(?P<secret>(?=[^\s]{0,64}[a-z])(?=[^\s]{0,64}[A-Z])(?=[^\s]{0,64}\d)(?=[^\s]{0,64}[!#$%^&*?@])(?![^\s@]{1,64}@[^\s@]{1,64}\.)[A-Za-z0-9!#$%^&*?@._+-]{8,64})(?![^\s\"'`,;.)])",
    ),
    # Several codes in a row.
    (
        "recovery-codes",
        ("code", "codes", "recovery", "backup", "scratch"),
        r"(?i:\b(?:recovery|backup|scratch|emergency|2fa|mfa|wiederherstellungs|einmal)[ -]?codes?\b)[^\n:=]{0,60}[:=\n-]?\s{0,6}(?P<secret>(?=[^\n]{0,40}\d)[-*\d.) \t]{0,6}[A-Za-z0-9]{4,12}(?:[- ]?[A-Za-z0-9]{4,12}){0,3}(?:[\s,;]{1,4}[-*\d.) \t]{0,6}(?=[A-Za-z-]{0,11}\d)[A-Za-z0-9]{4,12}(?:-[A-Za-z0-9]{4,12}){0,3}){1,15})",
    ),
    (
        "recovery-key",
        ("recovery key", "bitlocker", "filevault"),
        r"(?<![\w-])\d{6}(?:-\d{6}){7}(?![\w-])|(?i:(?:recovery key|filevault)[^\n]{0,40}?)(?P<secret>[A-Z0-9]{4}(?:-[A-Z0-9]{4}){5})",
    ),
    (
        "license-key",
        ("licen", "serial", "product key", "activation", "windows", "key"),
        r"(?<![\w-])(?=[A-Z-]{0,28}\d)(?=[\d-]{0,28}[A-Z])[A-Z0-9]{5}(?:-[A-Z0-9]{5}){3,5}(?![\w-])|(?i:(?:licen[cs]e|serial|product|activation)[ -]?(?:key|number|code)?[^\n]{0,30}?)(?P<secret>(?=[A-Z-]{0,30}\d)[A-Z0-9]{4,8}(?:-[A-Z0-9]{4,8}){3,7})(?![\w-])",
    ),
    (
        "totp-secret",
        ("2fa", "mfa", "totp", "otp", "authenticator"),
        r"(?i:\b(?:2fa|mfa|totp|otp|authenticator)\b[^\n]{0,40}?)(?<![A-Za-z0-9])(?P<secret>(?=[A-Z ]{0,40}[2-7])[A-Z2-7]{16,64}|(?=[A-Za-z ]{0,40}[2-7])(?:[A-Za-z2-7]{4} ){3,15}[A-Za-z2-7]{4})(?![A-Za-z0-9])",
    ),
    # Twelve words and more, none of them one that a sentence needs and the lists of such words lack.
    (
        "seed-phrase",
        ("seed", "mnemonic", "phrase", "recovery words", "backup phrase", "wallet", "24 words", "12 words"),
        rf"(?i:\b(?:(?:seed|recovery|backup|secret|wallet)[ -]?(?:phrase|words)|mnemonic(?: (?:phrase|seed|words))?|(?:wallet|bip-?39|ledger|trezor|metamask|crypto) ?(?:seed|phrase|words|backup)?|(?:12|24|twelve|twenty[- ]four) words|seed|wiederherstellungsphrase|seedphrase)\b(?:[^\n:=]{{0,60}}?(?:[:=]|\b(?:is|are|was|lautet|lauten|ist)\b))?[\s\"'“`(]{{0,4}}(?:1[.)] ?)?(?:{_SEED_WORD}[\s,]{{1,3}}(?:\d\d?[.)] ?)?){{11,23}}{_SEED_WORD})",
    ),
    (
        "private-key",
        ("0x", "private key", "privkey", "private_key"),
        r"(?i:(?:private|secret|signing|wallet|eth)[ _-]?key[^\n]{0,30}?)(?P<secret>0x[0-9a-fA-F]{64})(?![0-9a-fA-F])",
    ),
)
