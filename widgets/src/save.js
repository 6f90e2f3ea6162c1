// "Save picture" (SVG, PNG) and "copy as" (Python, JSON): Python makes the text, the browser hands it over.

/** A file name out of a widget's title. */
export function fileName(title, extension) {
  const stem = title
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, "-")
    .replace(/^-+|-+$/g, "");
  return `${stem || "picture"}.${extension}`;
}

/** The roles that Python's pictures take from the theme, with their values in the page: for a file. */
export function themed(svg, value) {
  const names = [...new Set(svg.match(/--jp-[\w-]+/g) ?? [])];
  const style = names
    .map((name) => [name, value(name).trim()])
    .filter(([, v]) => v)
    .map(([name, v]) => `${name}:${v}`)
    .join(";");
  return style ? svg.replace(/<svg ([^>]*?)style="/, (_, rest) => `<svg ${rest}style="${style};`) : svg;
}

/** Asks the Python half of `model` for one of "svg", "python", "json"; resolves with text. */
export function ask(model, what) {
  return new Promise((resolve) => {
    const answer = (message) => {
      if (message?.answer !== what) return;
      model.off("msg:custom", answer);
      resolve(message.text);
    };
    model.on("msg:custom", answer);
    model.send({ ask: what });
  });
}

function download(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

async function png(svg) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [image.width * 2, image.height * 2];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Pages that are not served securely have no clipboard but this one.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

/** A menu button: save as SVG or PNG, copy as Python or JSON; `kinds` says which of them there are. */
export function saveMenu(model, { title, signal, kinds = ["svg", "png", "python", "json"] }) {
  const words = { svg: "Save as SVG", png: "Save as PNG", python: "Copy as Python", json: "Copy as JSON" };
  const menu = document.createElement("details");
  menu.className = "ein-menu";
  const summary = document.createElement("summary");
  summary.className = "ein-button";
  summary.textContent = "Save";
  summary.setAttribute("aria-label", "Save the picture, or copy the program");
  const list = document.createElement("div");
  list.className = "ein-menu-list";
  menu.append(summary, list);
  const value = (name) => getComputedStyle(menu).getPropertyValue(name);
  const hand = {
    svg: async () =>
      download(
        fileName(title, "svg"),
        new Blob([themed(await ask(model, "svg"), value)], { type: "image/svg+xml" }),
      ),
    png: async () => download(fileName(title, "png"), await png(themed(await ask(model, "svg"), value))),
    python: async () => copy(await ask(model, "python")),
    json: async () => copy(await ask(model, "json")),
  };
  for (const kind of kinds) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = words[kind];
    button.addEventListener(
      "click",
      async () => {
        await hand[kind]();
        menu.open = false;
        summary.textContent = kind === "python" || kind === "json" ? "Copied" : "Saved";
        setTimeout(() => {
          summary.textContent = "Save";
        }, 1500);
      },
      { signal },
    );
    list.append(button);
  }
  const close = () => {
    menu.open = false;
  };
  const outside = (event) => menu.contains(event.target) || close();
  document.addEventListener("pointerdown", outside, { signal });
  menu.addEventListener("keydown", (event) => event.key === "Escape" && close(), { signal });
  return menu;
}
