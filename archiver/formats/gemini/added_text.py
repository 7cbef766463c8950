"""Text that hooks and Gemini CLI add to a prompt."""

import re

_ADDED = re.compile(r"<(hook_context|loaded_context)>(.*?)</\1>\s*", re.DOTALL)


def split_added(prompt: str) -> tuple[str, str]:
    """Return a prompt without the added text, and the added text.

    Gemini CLI escapes angle brackets in the text of hooks. They are restored.
    """
    added = "\n".join(found[2] for found in _ADDED.finditer(prompt)).replace("&lt;", "<").replace("&gt;", ">")
    return _ADDED.sub("", prompt).strip(), added.strip()
