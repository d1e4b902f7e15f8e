import type { ComponentChildren } from "preact";
import { Link } from "../router.tsx";

/** Blocks of Markdown, as far as our documents use it. All texts stay texts. */
export function Markdown({ text }: { text: string }) {
  return <div class="prose">{blocksOf(text).map((block, index) => toNode(block, index))}</div>;
}

/**
 * The section below the heading of an anchor, with its heading.
 *
 * @returns `undefined` where no heading has it
 */
export function sectionOf(text: string, anchor: string): string | undefined {
  const blocks = blocksOf(text);
  const start = blocks.findIndex((block) => levelOf(block) > 0 && slugOf(block) === anchor);
  const first = blocks[start];
  if (first === undefined) return undefined;
  const length = blocks
    .slice(start + 1)
    .findIndex((block) => levelOf(block) > 0 && levelOf(block) <= levelOf(first));
  return blocks.slice(start, length === -1 ? undefined : start + 1 + length).join("\n\n");
}

/** Paragraphs, lists, tables and headings end with an empty line; code with its fence. */
function blocksOf(text: string): string[] {
  const blocks: string[] = [];
  let isCode = false;
  let isOpen = false;
  for (const line of text.split("\n")) {
    const isFence = line.trimStart().startsWith("```");
    if (!isCode && !isFence && line.trim() === "") {
      isOpen = false;
      continue;
    }
    const last = blocks.length - 1;
    if (isOpen && !(isFence && !isCode)) blocks[last] = `${blocks[last]}\n${line}`;
    else blocks.push(line);
    if (isFence) isCode = !isCode;
    isOpen = !(isFence && !isCode);
  }
  return blocks;
}

const levelOf = (block: string) => /^(#{1,6}) /.exec(block)?.[1]?.length ?? 0;

/** Anchor of a heading, as GitHub makes it. */
const slugOf = (block: string) =>
  block
    .replace(/^#+ /, "")
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");

const item = /^\s*(?:[-*]|\d+\.) /;

function toNode(block: string, key: number): ComponentChildren {
  const level = levelOf(block);
  if (level > 0) {
    const Heading = level < 3 ? "h2" : "h3";
    return <Heading key={key}>{inline(block.replace(/^#+ /, ""))}</Heading>;
  }
  if (block.trimStart().startsWith("```")) {
    const code = block.split("\n").slice(1, -1).join("\n");
    return <pre key={key}>{code}</pre>;
  }
  if (block.startsWith("|"))
    return <Rows key={key} name={`Table, part ${key}`} lines={block.split("\n")} />;
  if (!item.test(block)) return <p key={key}>{inline(block.replaceAll("\n", " "))}</p>;
  const items = block.split(/\n(?=\s*(?:[-*]|\d+\.) )/).map((each) => each.replace(item, ""));
  const List = /^\s*\d/.test(block) ? "ol" : "ul";
  return (
    <List key={key}>
      {items.map((each) => (
        <li key={each}>{inline(each.replaceAll("\n", " "))}</li>
      ))}
    </List>
  );
}

function Rows({ name, lines }: { name: string; lines: readonly string[] }) {
  const cells = (line: string) => line.replace(/^\||\|$/g, "").split(/(?<!\\)\|/);
  const [head = "", , ...rows] = lines;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls needs the focus
    <section class="table" aria-label={name} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {cells(head).map((cell) => (
              <th key={cell} scope="col">
                {inline(cell.trim())}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row}>
              {cells(row).map((cell, index) => (
                <td key={`${index} ${cell}`}>{inline(cell.trim())}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** Code, bold text and links. */
function inline(text: string): ComponentChildren[] {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*|\[[^\]]+\]\([^)]+\))/).map((part, index) => {
    const code = /^`([^`]+)`$/.exec(part)?.[1];
    if (code !== undefined) return <code key={index}>{code}</code>;
    const bold = /^\*\*([^*]+)\*\*$/.exec(part)?.[1];
    if (bold !== undefined) return <strong key={index}>{inline(bold)}</strong>;
    const [, words, to] = /^\[([^\]]+)\]\(([^)]+)\)$/.exec(part) ?? [];
    return words === undefined || to === undefined ? (
      part
    ) : (
      <To key={index} words={words} to={to} />
    );
  });
}

/** Documents that the console has. */
const documents = ["close-the-month.md", "operating.md", "refunding.md", "webhooks.md"];

/** Links lead to documents beside this one, and to the web. Others are words. */
function To({ words, to }: { words: string; to: string }) {
  const [, page, section = ""] = /^([\w-]+\.md)(?:#(.+))?$/.exec(to) ?? [];
  if (page !== undefined && documents.includes(page))
    return <Link to={runbookPath(page, section)}>{inline(words)}</Link>;
  if (!to.startsWith("https://")) return <>{inline(words)}</>;
  return (
    <a href={to} target="_blank" rel="noreferrer">
      {inline(words)}
    </a>
  );
}

/** Address of a document in the console. */
export function runbookPath(page: string, section = ""): string {
  return `/runbooks/${page}${section === "" ? "" : `?${new URLSearchParams({ section })}`}`;
}
