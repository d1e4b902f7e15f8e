import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";

/**
 * Checks the built site. Each link within it has its page and its anchor, and no page loads
 * anything from another host.
 *
 * @param folder the built site
 * @param base the path that it is served below, such as `/` or `/coinslot/`
 * @returns how many links there are within the site, and the faults
 */
export function checkLinks(folder: string, base: string): { links: number; faults: string[] } {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
  const pages = new Map(
    files
      .filter((file) => file.endsWith(".html"))
      .map((file) => [file, readFileSync(join(folder, file), "utf8")]),
  );
  const anchors = new Map<string, Set<string>>();
  for (const [file, html] of pages) {
    anchors.set(file, new Set([...html.matchAll(/\sid="([^"]+)"/g)].map(([, id = ""]) => id)));
  }
  const faults: string[] = [];
  let links = 0;
  for (const [file, html] of pages) {
    for (const [, tag = "", url = ""] of html.matchAll(/<(\w+)\b[^>]*?\s(?:href|src)="([^"]*)"/g)) {
      const isElsewhere = /^(?:[a-z]+:|\/\/)/i.test(url);
      if (isElsewhere && tag !== "a") faults.push(`${file} loads ${url}`);
      if (isElsewhere || url === "") continue;
      links += 1;
      const [path = "", hash] = decodeURI(url).split("#");
      const target = path === "" ? file : fileOf(path, file, base);
      if (!existsSync(join(folder, target))) faults.push(`${file} links to ${url}: no such page`);
      else if (hash !== undefined && hash !== "" && anchors.get(target)?.has(hash) === false) {
        faults.push(`${file} links to ${url}: no such anchor`);
      }
    }
  }
  return { links, faults };
}

/** The built file that a link's path leads to. */
function fileOf(path: string, from: string, base: string): string {
  const [plain = ""] = path.split("?");
  const file = plain.startsWith("/")
    ? plain.slice(base.length)
    : posix.join(posix.dirname(from), plain);
  return file === "" || file.endsWith("/") ? `${file}index.html` : file;
}
