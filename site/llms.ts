import { publicationOrPlaceholder } from "../scripts/publication.mjs";
import type { Page } from "./page.ts";

/** `llms.txt`: the list of all pages with a line about each, in the form of llmstxt.org. */
export function listForModels(pages: readonly Page[]): string {
  const { homepage } = publicationOrPlaceholder();
  const [home] = pages;
  const lines = ["# Coinslot", "", `> ${summaryOf(home?.markdown ?? "")}`];
  for (const group of new Set(pages.map((page) => page.group))) {
    lines.push("", `## ${group}`, "");
    for (const { title, path, markdown } of pages.filter((page) => page.group === group)) {
      lines.push(`- [${title}](${homepage}/${path}): ${summaryOf(markdown)}`);
    }
  }
  return `${lines.join("\n")}\n`;
}

/** `llms-full.txt`: all pages, one after the other. */
export function textForModels(pages: readonly Page[]): string {
  return pages.map(({ path, markdown }) => `<!-- ${path} -->\n\n${markdown.trim()}\n`).join("\n");
}

/** The first sentence after the title, without marks. */
function summaryOf(markdown: string): string {
  const paragraph = /^(?!#)\S[\s\S]*?(?=\n\n|$)/m.exec(markdown.replace(/^# .*$/m, ""))?.[0] ?? "";
  const text = paragraph
    .replaceAll("\n", " ")
    .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replaceAll("**", "");
  return /^.*?[.!?:](?=\s|$)/.exec(text)?.[0].replace(/:$/, ".") ?? text;
}
