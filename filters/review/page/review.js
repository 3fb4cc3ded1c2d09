// The page of `pairwright review`: shows a row, sends the decision, shows the next row.
//
// Captions are untrusted input, so texts are only ever set as text. One request is in flight at a time, and keys pressed
// meanwhile are ignored: a decision is always about the row on the screen.
"use strict";

const WORDS = ["keep", "reject", "unsure", "fix"];
const SAID = { keep: "kept", reject: "rejected", unsure: "unsure", fix: "fixed" };
const KEYS = {
  k: "keep", r: "reject", u: "unsure", f: "fix", z: "undo", o: "undecided",
  n: "next", ArrowRight: "next", p: "previous", ArrowLeft: "previous",
};
const GONE = "Not saved: the review server does not respond. Start it again and open its new URL; all earlier decisions are kept.";
const OTHER = "This page belongs to an earlier run. Open the URL that `pairwright review` printed last.";

const $ = (id) => document.getElementById(id);
let standing = null; // progress of the review, from the server
let row = null; // the row on the screen; null when all are decided
let busy = false;

async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  };
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Error(GONE);
  }
  if (answer.status === 403) throw new Error(OTHER);
  if (!answer.ok) throw new Error((await answer.text()).trim());
  return answer.json();
}

async function alone(action) {
  if (busy) return;
  busy = true;
  document.body.setAttribute("aria-busy", "true");
  try {
    await action();
    showError("");
  } catch (error) {
    showError(error.message);
  } finally {
    busy = false;
    document.body.setAttribute("aria-busy", "false");
  }
}

function showError(message) {
  $("error").textContent = message;
  $("error").hidden = !message;
}

function stretches(element, parts, tag) {
  element.replaceChildren(...parts.map(([text, differs]) => {
    if (!differs) return document.createTextNode(text);
    const mark = document.createElement(tag);
    mark.textContent = text;
    return mark;
  }));
}

function listed(counts) {
  return WORDS.map((word) => `${counts[word]}\u00a0${SAID[word]}`).join(", ");
}

function showStanding() {
  const { counts, decided, rows, of, positives } = standing;
  if (positives) {
    $("hint").textContent = "Keep: the candidate is as true of the image as the caption, and it reads well. Reject: it may be false, or is no sentence.";
  }
  $("reviewer").textContent = standing.reviewer;
  const all = rows < of ? ` (a sample of ${of.toLocaleString("en")})` : "";
  $("counts").textContent = `${decided.toLocaleString("en")} of ${rows.toLocaleString("en")} decided${all}: ${listed(counts)}`;
  const bar = $("progress");
  bar.setAttribute("aria-valuemax", rows);
  bar.setAttribute("aria-valuenow", decided);
  WORDS.forEach((word, at) => {
    bar.children[at].className = word;
    bar.children[at].style.width = `${(100 * counts[word]) / rows}%`;
  });
}

function showRow() {
  $("done").hidden = true;
  $("row").hidden = $("decide").hidden = false;
  closeEditor();
  $("place").textContent = `Row ${row.at + 1} of ${standing.rows}`;
  $("type").textContent = row.type;
  $("decision").textContent = row.decision ? SAID[row.decision] : "";
  $("decision").className = `chip ${row.decision}`;
  $("decision").hidden = !row.decision;
  stretches($("caption"), row.caption, "del");
  stretches($("candidate"), row.candidate, "ins");
  stretches($("positive"), row.positive, "ins");
  $("positive-part").hidden = !row.positive.length;
  $("fixed").textContent = row.text;
  $("fixed-part").hidden = !row.text;
  $("others").replaceChildren(...row.others.map((text) => {
    const item = document.createElement("li");
    item.textContent = text;
    return item;
  }));
  $("others-part").hidden = !row.others.length;
  showImage();
  document.querySelectorAll(".decide button").forEach((button) => {
    button.setAttribute("aria-pressed", String(button.dataset.do === row.decision));
  });
  document.body.dataset.at = row.at;
  window.scrollTo(0, 0);
}

function showImage() {
  const image = $("image");
  image.hidden = !row.image;
  if (row.image) image.src = `/images/${row.at}`;
  else image.removeAttribute("src");
  noImage(!row.image);
}

function noImage(missing) {
  $("no-image").textContent = row.named ? `The image is not here: ${row.named}` : "The row names no image.";
  $("no-image").hidden = !missing;
}

function showDone() {
  row = null;
  $("row").hidden = $("decide").hidden = true;
  $("done").hidden = false;
  $("summary").textContent = `${listed(standing.counts)}.`;
  document.body.dataset.at = standing.rows;
}

async function open(at, said = "") {
  showStanding();
  if (at >= standing.rows) {
    showDone();
    $("status").textContent = `${said} All rows are decided.`;
    return;
  }
  row = await ask(`/api/rows/${at}`);
  showRow();
  const candidate = row.candidate.map(([text]) => text).join("");
  $("status").textContent = `${said} Row ${at + 1} of ${standing.rows}. Candidate: ${candidate}`;
}

// The first undecided row after `at`, else the first of all, else the end.
function undecidedAfter(at) {
  const ahead = standing.marks.indexOf("-", at + 1);
  return ahead < 0 ? standing.next : ahead;
}

async function decide(word, text = "") {
  const { at } = row;
  standing = await ask(`/api/rows/${at}`, { decision: word, text });
  await open(undecidedAfter(at), `Row ${at + 1} ${SAID[word]}.`);
}

async function undo() {
  const answer = await ask("/api/undo", {});
  standing = answer.standing;
  if (answer.at === null) $("status").textContent = "No decision to undo.";
  else await open(answer.at, "Undone.");
}

function openEditor() {
  $("edited").value = row.text || row.candidate.map(([text]) => text).join("");
  $("editor").hidden = false;
  $("keys").hidden = true; // no other decision is possible meanwhile, and phones need the space
  $("edited").focus();
  $("editor").scrollIntoView({ block: "nearest" });
}

function closeEditor() {
  if ($("editor").hidden) return;
  $("editor").hidden = true;
  $("keys").hidden = false;
  $("edited").blur();
}

function act(what) {
  if (busy || !standing) return;
  const at = row ? row.at : standing.rows;
  if (what === "undo") alone(undo);
  else if (what === "previous") at > 0 && alone(() => open(at - 1));
  else if (what === "next") row && alone(() => open(at + 1));
  else if (what === "undecided") alone(() => open(undecidedAfter(at)));
  else if (!row) return;
  else if (what === "fix") openEditor();
  else alone(() => decide(what));
}

document.addEventListener("keydown", (event) => {
  if (event.target === $("edited")) {
    if (event.key === "Escape") closeEditor();
    else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) $("editor").requestSubmit();
    else return;
    event.preventDefault();
    return;
  }
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
  const what = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!what) return;
  event.preventDefault(); // the letter must not be typed into the field that "fix" opens
  act(what);
});
document.querySelectorAll("[data-do]").forEach((button) => {
  button.addEventListener("click", () => act(button.dataset.do));
});
$("editor").addEventListener("submit", (event) => {
  event.preventDefault();
  alone(() => decide("fix", $("edited").value));
});
$("cancel").addEventListener("click", closeEditor);
$("image").addEventListener("error", () => {
  if (!row || !row.image) return;
  $("image").hidden = true;
  noImage(true);
});

alone(async () => {
  standing = await ask("/api/standing");
  await open(standing.next);
});
