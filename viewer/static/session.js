// Follows a session that is being written.
"use strict";
const exchanges = document.getElementById("exchanges");
const SECONDS = 2;

function atEnd() {
  return window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 120;
}

function lastStep() {
  const steps = exchanges.querySelectorAll("[data-line]");
  return steps[steps.length - 1];
}

// The last step may have grown, for example by a call, so that the answer begins with it.
function append(received) {
  const step = lastStep();
  const section = step?.closest(".exchange");
  const first = received.firstElementChild;
  step?.remove();
  if (section && first && section.dataset.number === first.dataset.number) {
    section.querySelector("h2").replaceWith(first.querySelector("h2"));
    section.querySelector("h2 .heading")?.nextElementSibling?.remove();
    section.querySelector("h2 .heading")?.classList.replace("heading", "visually-hidden");
    section.append(...[...first.children].filter((node) => node.tagName !== "H2"));
    first.remove();
  }
  const added = [...received.children];
  exchanges.append(...added);
  exchanges.dataset.lines = received.dataset.lines;
  window.htmx?.process(exchanges);
}

async function follow() {
  if (document.hidden) return;
  const step = lastStep();
  const query = new URLSearchParams({ part: exchanges.dataset.part, line: step?.dataset.line ?? 1, known: exchanges.dataset.lines, fragment: 1 });
  const answer = await fetch(`${exchanges.dataset.follow}?${query}`);
  if (answer.status !== 200) return;
  const received = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("[data-lines]");
  const isOpen = step?.open || step?.querySelector("details[open]");
  if (!isOpen && atEnd()) {
    append(received);
    document.getElementById("more").replaceChildren();
    window.scrollTo(0, document.documentElement.scrollHeight);
  } else {
    offer(received);
  }
}

function offer(received) {
  const count = Math.max(1, received.querySelectorAll("[data-line]").length - 1);
  const button = document.createElement("button");
  button.className = "primary";
  button.textContent = `${count} new ${count === 1 ? "step" : "steps"}`;
  button.addEventListener("click", () => {
    append(received);
    document.getElementById("more").replaceChildren();
    lastStep().scrollIntoView({ block: "center" });
  });
  document.getElementById("more").replaceChildren(button);
}

if (exchanges?.dataset.follow) setInterval(() => follow().catch(() => {}), SECONDS * 1000);
