import { isPlainSegment } from "./path-dialect.ts";

/** Finds the route paths that may match a request's path. */
export interface PathIndex<Item> {
  add(path: string, item: Item): void;
  /**
   * The items whose paths may match, in the order of their addition. Only paths that no Express
   * matches are left out.
   *
   * @param path of a request, as a router reads it
   */
  find(path: string): Item[];
  /** Every item, in the order of addition. */
  all(): readonly Item[];
}

/** One segment of the indexed paths, behind the segments of its parents. */
interface Node<Item> {
  /** By the segment's text in lower case; `undefined`: none. Most nodes are leaves. */
  texts: Map<string, Node<Item>> | undefined;
  /** For a parameter, or a text that may match in other letters than its own. */
  any: Node<Item> | undefined;
  items: { order: number; item: Item }[];
}

/**
 * Creates a trie of path segments. It decides nothing: a router of the application's Express reads
 * each path that it finds. It excludes a path only by segments that mean the same in every Express
 * and under every setting:
 *
 * - a text of plain ASCII signs, which matches itself, in any letter case;
 * - a parameter, and any other text without a special sign, which match one segment.
 *
 * A path with any other sign (a group, an optional part, a regular expression) is found always. In
 * Express 4 such a sign may change the segments before it. A wildcard at the end is the exception.
 * The rest of a request's path, behind the segments of a route's path, excludes nothing.
 */
export function createPathIndex<Item>(): PathIndex<Item> {
  const root = createNode<Item>();
  const items: Item[] = [];
  let maxDepth = 0;

  function collect(
    node: Node<Item>,
    segments: readonly string[],
    { depth, found }: { depth: number; found: Node<Item>["items"] },
  ): void {
    found.push(...node.items);
    const segment = segments[depth];
    if (segment === undefined) return;
    const text = node.texts?.get(segment);
    if (text !== undefined) collect(text, segments, { depth: depth + 1, found });
    if (node.any !== undefined) collect(node.any, segments, { depth: depth + 1, found });
  }

  return {
    add(path, item) {
      const steps = stepsOf(path);
      let node = root;
      for (const step of steps) node = childOf(node, step);
      node.items.push({ order: items.length, item });
      items.push(item);
      maxDepth = Math.max(maxDepth, steps.length);
    },
    find(path) {
      const found: Node<Item>["items"] = [];
      const isRooted = path.startsWith("/");
      // Letters beyond ASCII match no ASCII letter: both expressions are without the flag `u`.
      const segments = isRooted ? path.slice(1).toLowerCase().split("/", maxDepth) : [];
      collect(root, segments, { depth: 0, found });
      return found.sort((a, b) => a.order - b.order).map(({ item }) => item);
    },
    all: () => items,
  };
}

function createNode<Item>(): Node<Item> {
  return { texts: undefined, any: undefined, items: [] };
}

function childOf<Item>(node: Node<Item>, step: string | typeof anyText): Node<Item> {
  if (step === anyText) {
    node.any ??= createNode();
    return node.any;
  }
  node.texts ??= new Map();
  let child = node.texts.get(step);
  if (child === undefined) {
    child = createNode();
    node.texts.set(step, child);
  }
  return child;
}

/** A step that any one segment takes. */
const anyText = Symbol("any text");

/** Text that matches itself alone, in any letter case. */
const plainText = /^[\w.~%@,;=&'-]+$/;
/** A wildcard of either Express, one that may be empty, or a text that begins with one. */
const wildcard = /^(?:\*\w*|\{\*\w+\})$/;

/** The segments by which a route's path can be excluded. */
function stepsOf(path: string): (string | typeof anyText)[] {
  if (!path.startsWith("/")) return [];
  const segments = path.slice(1).split("/");
  const last = segments.at(-1) ?? "";
  // A slash at the end does not always count.
  if (last === "" || wildcard.test(last)) segments.pop();
  if (!segments.every((segment) => segment !== "" && isPlainSegment(segment))) return [];
  return segments.map((segment) => (plainText.test(segment) ? segment.toLowerCase() : anyText));
}
