
(() => {
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const byId = (id) => document.getElementById(id);
  const bar = byId("live");
  const pause = byId("live-pause");
  const news = byId("live-news");
  document.querySelector("nav").after(bar);
  bar.hidden = false;

  const session = {
    get(key) { try { return JSON.parse(sessionStorage.getItem(key)); } catch { return null; } },
    set(key, value) { try { sessionStorage.setItem(key, JSON.stringify(value)); } catch { /* not kept */ } },
    drop(key) { try { sessionStorage.removeItem(key); } catch { /* was not kept */ } },
  };

  // Labels. The form is made when a finding is opened first: a page may hold hundreds.
  const findings = all(".finding[data-name]");
  const names = { real: "Real", "not-a-bug": "Not a bug", debatable: "Debatable", "duplicate-of": "Duplicate", ignored: "Ignored" };

  const mark = (item, label) => {
    item.dataset.label = label;
    for (const button of all(".choices button[aria-pressed]", item)) {
      button.setAttribute("aria-pressed", String(button.value === label));
    }
    const meta = item.querySelector("summary .meta");
    let chip = meta.querySelector(".chip");
    if (!label) { chip?.remove(); return; }
    if (!chip) {
      chip = document.createElement("span");
      chip.className = "chip";
      meta.append(" ", chip);
    }
    chip.textContent = label;
  };

  const store = async (item, form, label) => {
    const said = form.querySelector(".said");
    const tell = (text, wrong) => { said.textContent = text; said.classList.toggle("wrong", wrong); };
    const wish = { id: item.dataset.name, label, of: label === "duplicate-of" ? form.elements.of.value : "", why: form.elements.why.value };
    if (label === "ignored" && !wish.why.trim()) {
      form.elements.why.focus();
      tell("Say why it is ignored, then press Ignored again.", true);
      return;
    }
    const buttons = all("button", form);
    const pressed = document.activeElement;
    for (const button of buttons) button.disabled = true;
    try {
      const answer = await fetch("label", {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(wish),
        referrerPolicy: "same-origin", // so that the origin is told
      });
      const now = answer.headers.get("Content-Type") === "application/json" ? await answer.json() : { error: await answer.text() };
      if (!answer.ok) { tell(now.error, true); return; }
      mark(item, now.label);
      if (bar.dataset.page === seen) bar.dataset.page = now.page; // our own doing is no news
      seen = now.page;
      close(form);
      form.elements.why.value = "";
      const of = now.of ? ` of ${now.of}` : "";
      tell(now.label ? `Stored: ${names[now.label].toLowerCase()}${of}${now.why ? `; ${now.why}` : ""}.` : "Label taken back.", false);
    } catch {
      tell("Not stored: the server does not answer. Is eddy web still running?", true);
    } finally {
      for (const button of buttons) button.disabled = false;
      if (pressed && form.contains(pressed) && !pressed.hidden) pressed.focus();
    }
  };

  const close = (form) => { form.querySelector(".of").hidden = form.querySelector(".save").hidden = true; };

  const choose = (item, form) => {
    const select = form.elements.of;
    select.replaceChildren(...findings.filter((other) => other !== item).map((other) => {
      const option = document.createElement("option");
      option.value = other.dataset.name;
      option.textContent = `${other.dataset.name} – ${other.querySelector(".title").textContent}`;
      return option;
    }));
    form.querySelector(".of").hidden = form.querySelector(".save").hidden = false;
    select.focus();
  };

  const prepare = (item) => {
    if (!item.open || item.querySelector(".labelling")) return;
    const form = byId("labelling").content.cloneNode(true).querySelector("form");
    item.querySelector(".body").append(form);
    mark(item, item.dataset.label);
    form.addEventListener("click", (event) => {
      const value = event.target.closest(".choices button")?.value;
      if (value === "duplicate-of") choose(item, form);
      else if (value) store(item, form, value);
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (!form.querySelector(".save").hidden) store(item, form, "duplicate-of");
    });
  };
  for (const item of findings) {
    item.addEventListener("toggle", () => prepare(item));
    prepare(item);
  }

  // What a person has open, typed and looks at stays over a refresh.
  const key = (item) => item.id || `${item.closest("[id]")?.id}:${item.querySelector("summary").firstChild.textContent.trim()}`;
  const fields = () => all("#filter input, #filter select");
  const VIEW = "eddy-view";

  const refresh = () => {
    const open = {};
    for (const item of all("details")) open[key(item)] = item.open;
    const top = findings.find((item) => item.getBoundingClientRect().bottom > 0);
    const focus = document.activeElement;
    session.set(VIEW, {
      open,
      fields: fields().map((field) => [field.id, field.value]),
      top: scrollY > 0 && top ? [top.id, top.getBoundingClientRect().top] : null,
      scroll: scrollY,
      focus: focus?.id || (focus?.tagName === "SUMMARY" ? focus.parentElement.id : ""),
    });
    history.scrollRestoration = "manual";
    location.reload();
  };

  const view = session.get(VIEW);
  session.drop(VIEW);
  if (view) {
    for (const item of all("details")) if (key(item) in view.open) item.open = view.open[key(item)];
    for (const [id, value] of view.fields) if (byId(id)) byId(id).value = value;
    byId("filter").dispatchEvent(new Event("input"));
    const focus = view.focus && byId(view.focus);
    (focus?.tagName === "DETAILS" ? focus.firstElementChild : focus || null)?.focus({ preventScroll: true });
    const place = () => {
      const top = view.top && byId(view.top[0]);
      if (top) scrollBy({ top: top.getBoundingClientRect().top - view.top[1], behavior: "instant" });
      else scrollTo({ top: view.scroll, behavior: "instant" });
    };
    place();
    requestAnimationFrame(() => { place(); history.scrollRestoration = "auto"; });
  }

  // The campaign: its numbers every few seconds, the page when it has something new and nobody is busy with it.
  const POLL = 5000, IDLE = 4000, NUMBERS = 60000;
  const loaded = Date.now();
  let seen = bar.dataset.page;
  let numbers = null;
  let touched = 0;
  let failures = 0;
  for (const kind of ["keydown", "pointerdown", "pointermove", "wheel", "touchmove", "scroll"]) {
    addEventListener(kind, () => { touched = Date.now(); }, { passive: true });
  }

  const paused = (value) => {
    pause.setAttribute("aria-pressed", String(value));
    session.set("eddy-paused", value);
  };
  paused(session.get("eddy-paused") === true);
  pause.addEventListener("click", () => paused(pause.getAttribute("aria-pressed") !== "true"));
  byId("live-refresh").addEventListener("click", refresh);

  const busy = () => Date.now() - touched < IDLE
    || document.activeElement?.matches(".labelling *, #filter input, #filter select")
    || all(".labelling input").some((input) => input.value)
    || !getSelection().isCollapsed;

  const count = (value) => Number(value).toLocaleString("en");
  const show = (stats) => {
    bar.dataset.state = stats.running ? "running" : "stopped";
    const found = Object.entries(stats.findings).filter(([, number]) => number).map(([name, number]) => `${count(number)} ${name}`);
    byId("live-text").textContent = [
      stats.running ? "running" : `stopped: ${stats.stop_reason || "never ran"}`,
      `${count(stats.execs_done)} programs`,
      stats.running ? `${count(Math.round(stats.programs_per_hour))} an hour` : "",
      found.length ? `findings: ${found.join(", ")}` : "no findings",
      stats.suspects_waiting ? `${count(stats.suspects_waiting)} suspects wait` : "",
    ].filter(Boolean).join(" · ");
  };

  const look = async () => {
    try {
      const answer = await fetch("stats", { cache: "no-cache" });
      if (!answer.ok) throw new Error(answer.status);
      const stats = await answer.json();
      failures = 0;
      show(stats);
      seen = stats.page;
      const changed = numbers !== null && numbers !== stats.execs_done;
      numbers ??= stats.execs_done;
      const fresh = seen !== bar.dataset.page;
      if (news.textContent !== (fresh ? "new findings or labels" : "")) news.textContent = fresh ? "new findings or labels" : "";
      const due = fresh || (changed && Date.now() - loaded > NUMBERS);
      if (due && pause.getAttribute("aria-pressed") !== "true" && !busy()) refresh();
    } catch {
      failures += 1;
      bar.dataset.state = "lost";
      byId("live-text").textContent = "eddy web does not answer; the page shows what was";
    }
  };

  let timer = 0;
  const next = async () => {
    clearTimeout(timer);
    if (!document.hidden) await look();
    timer = setTimeout(next, Math.min(60000, POLL * 2 ** failures));
  };
  document.addEventListener("visibilitychange", () => { if (!document.hidden) next(); });
  next();
})();
