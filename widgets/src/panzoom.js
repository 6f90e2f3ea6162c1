// Pan and zoom of one picture inside a frame: drag, wheel with Ctrl, + - 0, and two-finger scrolling.
//
// A view is {x, y, scale}: where the picture's corner is in the frame, and how much larger it is drawn.

/** `view` zoomed by `factor` so that the point of the frame stays where it is. */
export function zoomAt(view, factor, point, limits = { least: 0.05, most: 8 }) {
  const scale = Math.min(Math.max(view.scale * factor, limits.least), limits.most);
  const ratio = scale / view.scale;
  return {
    x: point.x - (point.x - view.x) * ratio,
    y: point.y - (point.y - view.y) * ratio,
    scale,
  };
}

/** `view` moved, but never so far that less than `keep` pixels of the picture are left in the frame. */
export function panBy(view, dx, dy, picture, frame, keep = 48) {
  const clamp = (value, size, room) => Math.min(Math.max(value, keep - size * view.scale), room - keep);
  return {
    ...view,
    x: clamp(view.x + dx, picture.width, frame.width),
    y: clamp(view.y + dy, picture.height, frame.height),
  };
}

/** The view in which all of `picture` is seen, centred and not magnified beyond `most`. */
export function fit(picture, frame, most = 1) {
  const scale = Math.min(frame.width / picture.width, frame.height / picture.height, most);
  return {
    x: Math.max((frame.width - picture.width * scale) / 2, 0),
    y: Math.max((frame.height - picture.height * scale) / 2, 0),
    scale,
  };
}

/**
 * Lets the reader pan and zoom `picture`, the only child of `frame`, whose own size is `size()`.
 *
 * A drag that starts on something selectable still clicks it if the pointer did not move.  Returns
 * {fit, zoom, set, view}.
 */
export function panzoom(frame, picture, { signal, size, onChange = () => {} }) {
  let view = { x: 0, y: 0, scale: 1 };
  let drag = null;
  let still = 0;
  const listen = (target, type, handler, more = {}) =>
    target.addEventListener(type, handler, { signal, ...more });
  const room = () => ({ width: frame.clientWidth, height: frame.clientHeight });

  function set(next) {
    view = next;
    // A layer of its own while it moves, so that nothing is painted anew; drawn sharp once it rests.
    picture.style.willChange = "transform";
    clearTimeout(still);
    still = setTimeout(() => {
      picture.style.willChange = "";
    }, 250);
    picture.style.transform = `translate(${view.x}px, ${view.y}px) scale(${view.scale})`;
    onChange(view);
  }

  function zoom(factor, point = { x: frame.clientWidth / 2, y: frame.clientHeight / 2 }) {
    set(zoomAt(view, factor, point));
  }

  picture.style.transformOrigin = "0 0";
  listen(
    frame,
    "wheel",
    (event) => {
      const box = frame.getBoundingClientRect();
      if (event.ctrlKey || event.metaKey) {
        zoom(Math.exp(-event.deltaY / 300), { x: event.clientX - box.left, y: event.clientY - box.top });
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        set(panBy(view, -(event.deltaX || event.deltaY), 0, size(), room()));
      } else {
        return; // a plain wheel scrolls the page
      }
      event.preventDefault();
    },
    { passive: false },
  );
  listen(frame, "pointerdown", (event) => {
    if (event.button === 0) drag = { id: event.pointerId, x: event.clientX, y: event.clientY, moved: false };
  });
  listen(frame, "pointermove", (event) => {
    if (!drag || event.pointerId !== drag.id) return;
    const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
    if (!drag.moved && Math.hypot(dx, dy) < 4) return;
    if (!drag.moved) frame.setPointerCapture(drag.id);
    drag = { ...drag, x: event.clientX, y: event.clientY, moved: true };
    set(panBy(view, dx, dy, size(), room()));
  });
  const release = () => {
    if (drag?.moved) {
      // The click that ends a drag is none.
      const stop = (event) => event.stopPropagation();
      frame.addEventListener("click", stop, { capture: true, once: true });
      setTimeout(() => frame.removeEventListener("click", stop, { capture: true }), 0);
    }
    drag = null;
  };
  // A browser scrolls to what gets the focus, even in a frame that does not scroll: then the picture moves.
  listen(frame, "scroll", () => {
    const { scrollLeft, scrollTop } = frame;
    if (scrollLeft === 0 && scrollTop === 0) return;
    frame.scrollTo(0, 0);
    set({ ...view, x: view.x - scrollLeft, y: view.y - scrollTop });
  });
  listen(frame, "pointerup", release);
  listen(frame, "pointercancel", release);
  listen(frame, "keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "+" || event.key === "=") zoom(1.25);
    else if (event.key === "-") zoom(0.8);
    else if (event.key === "0") set(fit(size(), room()));
    else return;
    event.preventDefault();
  });
  return { fit: (most) => set(fit(size(), room(), most)), zoom, set, view: () => view };
}
