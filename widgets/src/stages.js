// Where a run is: which states of which blocks follow one another, and what a block is at one of them.

/** One entry a state of a block: {task, frame}, in the order in which the tasks run. */
export function positions(tasks) {
  return tasks.flatMap((task, i) => task.frames.map((_, frame) => ({ task: i, frame })));
}

/** What a block is when task number `at` runs: not made "yet", made "now", "here", or no longer needed. */
export function stage(task, at) {
  if (task.id > at) return "yet";
  if (task.id === at) return "now";
  return task.last < at ? "gone" : "here";
}

/** The numbers of the elements that lie in `box` of an array of `shape`, the last dimension fastest. */
export function cellsIn(box, shape) {
  let found = [0];
  shape.forEach((extent, d) => {
    const [start, stop] = box[d];
    const inside = Array.from({ length: Math.max(stop - start, 0) }, (_, k) => start + k);
    found = found.flatMap((at) => inside.map((k) => at * extent + k));
  });
  return found;
}
