import { readFileSync } from "node:fs";
import { defineConfig } from "vitepress";
import { sitePath } from "../site-path.ts";

interface ListedPage {
  path: string;
  title: string;
  group: string;
}

const pages: ListedPage[] = JSON.parse(
  readFileSync(new URL("../.pages/pages.json", import.meta.url), "utf8"),
);
const groups = [...new Set(pages.map(({ group }) => group))];

// biome-ignore lint/style/noDefaultExport: the site builder reads the default export.
export default defineConfig({
  title: "Coinslot",
  description: "A coin slot for Express routes",
  lang: "en",
  base: sitePath(),
  srcDir: ".pages",
  outDir: "dist",
  cacheDir: "../node_modules/.cache/vitepress",
  // Of each picture, the one for the reader's colours.
  head: [["style", {}, "html.dark img.of-light, html:not(.dark) img.of-dark { display: none }"]],
  // The build checks links itself, with their anchors.
  ignoreDeadLinks: true,
  markdown: {
    // `sqlite:<file>` in a table is text.
    html: false,
    anchor: { slugify },
    languageAlias: { env: "dotenv", caddyfile: "nginx" },
  },
  // The search index is one file, loaded when a reader searches.
  vite: { build: { chunkSizeWarningLimit: 2000 } },
  themeConfig: {
    search: { provider: "local" },
    outline: [2, 3],
    sidebar: groups.map((group) => ({
      text: group,
      collapsed: false,
      items: pages
        .filter((page) => page.group === group)
        .map(({ title, path }) => ({ text: title, link: linkOf(path) })),
    })),
    nav: [
      { text: "Sell", link: "/docs/selling" },
      { text: "Buy", link: "/docs/buying" },
      { text: "Operate", link: "/docs/operating" },
      { text: "Reference", link: "/reference/express" },
    ],
  },
  // The menu opens by a script; without one, each page ends with it.
  transformHtml: (html) => html.replace("</body>", `${pagesWithoutScript()}</body>`),
});

function pagesWithoutScript(): string {
  const items = pages.map(
    ({ path, title }) => `<li><a href="${sitePath()}${htmlOf(path)}">${title}</a></li>`,
  );
  return `<noscript><style>
.VPNavBarHamburger, .VPNavBarSearch, .VPLocalNav .menu { display: none !important }
</style><nav class="vp-doc" aria-label="All pages" style="padding: 24px">
<h2>All pages</h2><ul>${items.join("")}</ul></nav></noscript>`;
}

function htmlOf(path: string): string {
  return path === "index.md" ? "" : path.replace(/\.md$/, ".html");
}

/** Anchors as code forges make them, so that links into READMEs work in both places. */
function slugify(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .replace(/\s/g, "-");
}

function linkOf(path: string): string {
  return `/${path.replace(/(?:index)?\.md$/, "")}`;
}
