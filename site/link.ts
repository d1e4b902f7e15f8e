import { existsSync } from "node:fs";
import { join, posix } from "node:path";
import { replaceLinks } from "../scripts/markdown-links.mjs";
import { publicationOrPlaceholder } from "../scripts/publication.mjs";
import { type Page, root } from "./page.ts";
import { picturesFolder, replacePictures } from "./pictures.ts";

/**
 * A page's Markdown with links that work on the site. A link goes to a page where the repository's
 * file is one, else to the repository.
 *
 * @throws where a link leads to no file
 */
export function linkPage(page: Page, pages: readonly Page[]): string {
  const { repository } = publicationOrPlaceholder();
  const pathOf = new Map(pages.map(({ source, path }) => [source, path]));
  return replaceLinks(replacePictures(page.markdown), (target) => {
    const [path = "", anchor] = target.split("#");
    const hash = anchor === undefined ? "" : `#${anchor}`;
    // Generated pages link to pages already.
    if (page.path.startsWith("reference/")) return target;
    const file = posix.join(posix.dirname(page.source), path).replace(/\/$/, "");
    const found = pathOf.get(file) ?? pathOf.get(posix.join(file, "README.md"));
    if (found !== undefined) return `${posix.relative(posix.dirname(page.path), found)}${hash}`;
    if (file.startsWith(`${picturesFolder}/`)) {
      return posix.relative(posix.dirname(page.path), file);
    }
    if (!existsSync(join(root, file))) throw new Error(`${page.source} links to ${target}.`);
    return `${repository}/blob/HEAD/${file}${hash}`;
  });
}
