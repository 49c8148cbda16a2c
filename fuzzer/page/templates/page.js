"use strict";
(() => {
  const root = document.documentElement;
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const byId = (id) => document.getElementById(id);

  // Theme: the system's, unless a person chose. A file may have no storage; the choice then lasts for the page.
  const store = {
    get() { try { return localStorage.getItem("eddy-theme"); } catch { return null; } },
    set(value) { try { localStorage.setItem("eddy-theme", value); } catch { /* not kept */ } },
  };
  const saved = store.get();
  if (saved === "light" || saved === "dark") root.dataset.theme = saved;
  const theme = byId("theme");
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    store.set(root.dataset.theme);
  });

  // Filter.
  const findings = all(".finding");
  const texts = new Map();
  const text = (item) => {
    if (!texts.has(item)) texts.set(item, item.textContent.toLowerCase());
    return texts.get(item);
  };
  const form = byId("filter");
  const shown = byId("shown");
  const copies = byId("copies");
  const fits = (item, key, wanted) => !wanted || (wanted === "-" ? !item.dataset[key] : item.dataset[key] === wanted);
  const apply = () => {
    const words = byId("q").value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = ["word", "kind", "state", "label"].map((key) => [key, byId(key).value]);
    const every = !copies || copies.value === "all";
    let count = 0;
    for (const item of findings) {
      const visible = (every || !item.dataset.copy) && wanted.every(([key, value]) => fits(item, key, value))
        && words.every((word) => text(item).includes(word));
      item.hidden = !visible;
      count += visible;
    }
    shown.textContent = `${count} of ${findings.length}`;
  };
  if (findings.length) {
    form.hidden = false;
    form.addEventListener("input", apply);
    form.addEventListener("submit", (event) => event.preventDefault());
    apply();
  }

  // Copy: the program and what makes it show by itself, as one script.
  const copy = async (value) => {
    try {
      await navigator.clipboard.writeText(value);
    } catch {
      const area = document.createElement("textarea");
      area.value = value;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
  };
  for (const button of all(".copy")) {
    button.hidden = false;
    const name = button.textContent;
    button.addEventListener("click", async () => {
      const parts = all("pre", button.closest(".script")).map((part) => part.textContent.trimEnd());
      await copy(parts.join("\n\n\n") + "\n");
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = name; }, 1500);
    });
  }

  // A link to a finding opens it.
  const open = () => {
    const item = location.hash.length > 1 && byId(decodeURIComponent(location.hash.slice(1)));
    if (item && item.tagName === "DETAILS") {
      item.hidden = false;
      item.open = true;
    }
  };
  addEventListener("hashchange", open);
  open();

  // Paper cannot be clicked: print what the filter shows with its body.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = findings.filter((item) => !item.open && !item.hidden);
    for (const item of opened) item.open = true;
  });
  addEventListener("afterprint", () => {
    for (const item of opened) item.open = false;
  });
})();
