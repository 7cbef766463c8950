"""Rules for tokens with a vendor's prefix, secret URLs, and other secrets with a recognisable form."""

from .credentials import LETTERS_ONLY, SEPARATOR
from .rule import AllowList, Rule

PREFIXES = (
    r"sk-",  # OpenAI, Anthropic (sk-ant-oat01-), OpenRouter (sk-or-v1-), DeepSeek, Langfuse
    r"xai-",
    r"gsk_",  # Groq
    r"csk-",  # Cerebras
    r"pplx-",
    r"tvly-",
    r"nvapi-",
    r"r8_",  # Replicate
    r"lsv2_[a-z]{2}_",  # LangSmith
    r"ya29\.",  # Google OAuth
    r"GOCSPX-",
    r"dckr_[op]at_",
    r"tskey-[a-z]+-",
    r"fig[a-z]_",  # Figma
    r"dt0[a-z][0-9]{2}\.",  # Dynatrace
    r"sb[a-z]?_(?:secret_)?",  # Supabase
    r"vc[a-z]_",  # Vercel
    r"ph[cx]_",  # PostHog
    r"whsec_",
    r"apify_api_",
    r"napi_",  # Neon
    r"e2b_",
    r"jina_",
    r"ATCTT3",
)
"""Prefixes of tokens. At least 20 random characters follow each prefix."""

_BEFORE = r"(?:^|[^A-Za-z0-9]|\\[nrt])"
_VENDOR_PLACEHOLDERS = AllowList(patterns=(r"(?i)x{4}|\.{3}|example|your|placeholder|redacted|^T0+/B0+/",))
"""Pattern for placeholders in vendors' examples. It has no short words, because a random value can contain them."""
_WORDS = AllowList(patterns=(r"^[A-Za-z]+\d?[_.-](?:[A-Za-z]+\d{0,4}|\d{1,6})(?:[_.-](?:[A-Za-z]+\d{0,4}|\d{1,6}))*$",))
"""Pattern for words and numbers joined by punctuation, such as the name of a CSS class."""
_PAGE = AllowList(patterns=(r"^(?:(?:[A-Za-z]+\d{0,4}|\d{1,6})(?:[/._?=&#-]+|$))+$",))
"""Pattern for a path of words and numbers, such as the path of a documentation page."""
_PATH = r"[\w@%./~+-]"

# Base64 of the first line of a private key, of its DER encoding, and of the first bytes of an OpenSSH key.
_ENCODED = (
    r"(?:LS0tLS1CRUdJTi(?:BQUklW|BSU0EgUFJJ|BFQyBQ|BPUEVOU1NI|BFTkNS|BEU0EgUFJJ|BQR1AgUFJJ|BTU0gy)"
    r"|MII[A-Za-z0-9+/]{3}IBA(?:DANBgkq|AKC)|MC4CAQAwBQYDK2Vw|MHcCAQEEI|MIGHAgEAMBMGByqGSM49|b3BlbnNzaC1rZXktdjE)"
)

TOKENS: tuple[Rule, ...] = (
    Rule(
        "vendor-token",
        rf"{_BEFORE}((?:{'|'.join(PREFIXES)})[\w-][\w.=-]{{18,}}[\w=-])",
        tuple(rf"{prefix if len(prefix) > 3 else f'{_BEFORE}{prefix}'}[a-z0-9_-]" for prefix in PREFIXES),
        entropy=3.5,
        allowed=(_VENDOR_PLACEHOLDERS, LETTERS_ONLY, _WORDS),
    ),
    Rule(
        "telegram-bot-token",  # ID of the bot and key. All keys have the same beginning.
        r"(?:^|[^A-Za-z0-9]|bot)([0-9]{8,12}:AA[\w-]{33})",
        (r"[0-9]:aa[\w-]",),
        entropy=3.5,
        allowed=(LETTERS_ONLY,),
    ),
    Rule(
        "discord-bot-token",  # Base64 of an ID, time, signature.
        r"\b((?:[MNO][DTjz][AEIMQUYcgk][w-z0-5]){4,}[\w-]{0,3}\.[\w-]{6}\.[\w-]{27,40})",
        (r"[mno][dtjz][aeimquycgk][w-z0-5][mno][dtjz][aeimquycgk][w-z0-5]",),
    ),
    Rule(
        "webhook",  # Anyone who knows the URL can post.
        rf"(?i)https?://(?:hooks?\.[\w.-]+/|[\w.-]*webhook\.[\w.-]+/|[\w.-]+/(?:[\w.-]+/)*[\w.-]*webhooks?(?:b2)?/)"
        rf"({_PATH}{{20,}})",
        (r"//hooks?\.", r"webhook\.", r"webhooks?(?:b2)?/"),
        entropy=3.3,
        allowed=(_VENDOR_PLACEHOLDERS, LETTERS_ONLY, _PAGE),
    ),
    Rule(
        "url-signature",  # Signed URLs, for example of Azure (sig), Amazon or Google (Signature).
        r"(?i)[?&;](?:sig|(?:x-(?:amz|goog)-)?signature)=([a-z0-9%+/_-]{40,}={0,2})",
        (r"[?&;](?:sig|[a-z-]*signature)=",),
        entropy=3.5,
        allowed=(_VENDOR_PLACEHOLDERS, LETTERS_ONLY),
    ),
    Rule(
        "encrypted-password",  # Password in the encrypted form of Maven.
        r"(\{[A-Za-z0-9+/]{20,}={1,2}\})",
        (r"[a-z0-9+/]={1,2}\}",),
        entropy=3.5,
        allowed=(LETTERS_ONLY, AllowList(patterns=(r"^\{[A-Za-z]+=",))),
    ),
    Rule(
        "private-key",
        rf"{_ENCODED}[A-Za-z0-9+/=]{{16,}}(?:{SEPARATOR}+[A-Za-z0-9+/=]{{16,}})*",
        (
            r"ls0tls1crudjti(?:bquklw|bsu0egufjj|bfqybq|bpuevou1ni|bftkns|beu0egufjj|bqr1agufjj|btu0gy)",
            r"iba(?:danbgkq|akc)",
            r"mc4caqawbqydk2vw|mhccaqeei|mighageambmgbyqgsm49|b3blbnnzac1rzxktdje",
        ),
    ),
)
