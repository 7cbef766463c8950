// Keys: / or Ctrl-K searches, j and k move through a list, Enter opens the row (it has the focus).
"use strict";
const typing = (node) => node instanceof HTMLElement && (node.isContentEditable || /^(INPUT|SELECT|TEXTAREA)$/.test(node.tagName));

function search() {
  const input = document.querySelector("[data-search]");
  input.focus();
  input.select();
}

function move(step) {
  const rows = [...document.querySelectorAll("[data-row]")];
  if (!rows.length) return;
  const current = rows.indexOf(document.activeElement);
  const next = current < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(Math.max(current + step, 0), rows.length - 1);
  document.querySelectorAll(".current").forEach((row) => row.classList.remove("current"));
  rows[next].focus();
  rows[next].closest("li, article")?.classList.add("current");
  rows[next].scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    search();
    return;
  }
  if (event.key === "Escape" && typing(event.target)) event.target.blur();
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  const action = { "/": search, j: () => move(1), k: () => move(-1) }[event.key];
  if (action) {
    event.preventDefault();
    action();
  }
});

// In one column, facets would push the end of the page away.
if (window.matchMedia("(max-width: 900px)").matches) document.querySelectorAll("[data-closed-if-narrow]").forEach((part) => (part.open = false));

// A part that cannot be loaded shows its link again.
for (const problem of ["htmx:responseError", "htmx:sendError"]) {
  document.addEventListener(problem, ({ detail: { elt } }) => [elt, ...elt.querySelectorAll(".lazy")].forEach((node) => node.classList.remove("lazy")));
}

// A form with data-auto is sent when a field changes. Without script, its button sends it.
document.addEventListener("change", (event) => {
  const form = event.target.closest("form[data-auto]");
  if (form) form.requestSubmit();
});

// Fields left empty would only lengthen the address.
document.addEventListener("formdata", (event) => {
  if (event.target.method !== "get") return;
  for (const [name, value] of [...event.formData]) if (value === "") event.formData.delete(name);
});

// Copies the text before the button. Without the right to copy, it selects the text.
document.addEventListener("click", async ({ target }) => {
  const button = target.closest?.("[data-copy]");
  if (!button) return;
  const text = button.previousElementSibling;
  try {
    await navigator.clipboard.writeText(text.textContent);
    button.textContent = "Copied";
  } catch {
    window.getSelection().selectAllChildren(text);
    button.textContent = "Selected";
  }
});
