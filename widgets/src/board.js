// The board of a run step by step: a card a block, of which only what is made so far has its digits.

import { cellsIn, stage } from "./stages.js";

/** Everything about the cards of the blocks. */
export function board(view, frame) {
  const cards = view.tasks.map((task) => frame.querySelector(`[data-task="${task.id}"]`));
  const grids = view.tasks.map((task) => {
    const grid = frame.querySelector(`[data-cells="${task.id}"]`);
    return {
      boxes: [...(grid?.querySelectorAll("rect") ?? [])],
      texts: [...(grid?.querySelectorAll("text") ?? [])],
    };
  });
  const flights = view.tasks.map((task) => frame.querySelector(`[data-move="${task.id}"]`));

  function write(i, cells) {
    cells?.forEach((text, k) => {
      if (grids[i].texts[k].textContent !== text) grids[i].texts[k].textContent = text;
    });
  }

  function show(now) {
    const current = now ? view.tasks[now.task] : null;
    const at = now ? now.task : -1;
    view.tasks.forEach((task, i) => {
      cards[i].dataset.stage = stage(task, at);
      cards[i].classList.toggle("ein-read", current?.inputs.includes(i) ?? false);
      for (const box of grids[i].boxes) box.classList.remove("ein-cell");
      if (i !== at) write(i, task.frames.at(-1).cells);
      if (flights[i]) flights[i].dataset.stage = i === at ? "now" : i < at ? "gone" : "yet";
    });
    if (!current) return;
    const state = current.frames[now.frame];
    write(at, state.cells);
    current.inputs.forEach((j, k) => {
      if (!state.reads[k]) return;
      for (const cell of cellsIn(state.reads[k], view.tasks[j].shape)) {
        grids[j].boxes[cell]?.classList.add("ein-cell");
      }
    });
    reveal(frame, cards[at]);
  }

  /** A copy of what moves flies from its site to where it is needed. */
  function fly(task, duration) {
    const [from, to] = [cards[task.inputs[0]], cards[task.id]];
    const [a, b] = [from.getBBox(), to.getBBox()];
    const ghost = from.cloneNode(true);
    for (const name of ["data-task", "data-keys", "tabindex"]) ghost.removeAttribute(name);
    ghost.dataset.stage = "ghost";
    ghost.setAttribute("aria-hidden", "true");
    to.parentNode.append(ghost);
    to.dataset.stage = "yet";
    const move = `translate(${b.x - a.x}px, ${b.y - a.y}px)`;
    const flight = ghost.animate([{ transform: "translate(0, 0)" }, { transform: move }], {
      duration,
      easing: "ease-in-out",
    });
    const land = () => {
      ghost.remove();
      if (to.dataset.stage === "yet" && flights[task.id].dataset.stage === "now") to.dataset.stage = "now";
    };
    flight.onfinish = land;
    flight.oncancel = land;
    return flight;
  }

  /** Scrolls to what runs, once there is room to scroll in. */
  function follow(now) {
    if (now) reveal(frame, cards[now.task]);
  }

  return { show, fly, follow };
}

/** Scrolls `frame`, and nothing around it, so that `card` is seen. */
function reveal(frame, card) {
  const [room, box] = [frame.getBoundingClientRect(), card.getBoundingClientRect()];
  const shift = (low, high, from, to) => (low < from ? low - from : high > to ? high - to : 0);
  const left = shift(box.left - 20, box.right + 20, room.left, room.right);
  const top = shift(box.top - 20, box.bottom + 20, room.top, room.bottom);
  if (left || top) frame.scrollBy({ left, top });
}
