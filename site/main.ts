// Builds the documentation site into site/dist: guides, READMEs and API reference, llms.txt and
// llms-full.txt, with every link checked.
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { build } from "vitepress";
import { checkLinks } from "./check-links.ts";
import { linkPage } from "./link.ts";
import { listForModels, textForModels } from "./llms.ts";
import { root, writtenPages } from "./page.ts";
import { picturesFolder } from "./pictures.ts";
import { referencePages } from "./reference.ts";
import { sitePath } from "./site-path.ts";

const site = join(root, "site");
const sources = join(site, ".pages");
const output = join(site, "dist");

const unlinked = [...writtenPages(), ...(await referencePages())];
const pages = unlinked.map((page) => ({ ...page, markdown: linkPage(page, unlinked) }));
rmSync(sources, { recursive: true, force: true });
for (const { path, markdown } of pages) write(join(sources, path), markdown);
cpSync(join(root, picturesFolder), join(sources, picturesFolder), { recursive: true });
const list = pages.map(({ path, title, group }) => ({ path, title, group }));
write(join(sources, "pages.json"), JSON.stringify(list));

await build(site);
for (const { path, markdown } of pages) write(join(output, path), markdown);
write(join(output, "llms.txt"), listForModels(pages));
write(join(output, "llms-full.txt"), textForModels(pages));

const { links, faults } = checkLinks(output, sitePath());
for (const fault of faults) console.error(fault);
console.log(`${pages.length} pages, ${links} links, ${faults.length} faults: ${output}`);
process.exit(faults.length === 0 ? 0 : 1);

function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}
