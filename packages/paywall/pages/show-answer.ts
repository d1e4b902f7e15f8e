import { element } from "./element.ts";

/** Longer texts, in bytes, are saved and not shown. */
const maxShown = 500_000;
const maxPage = 5_000_000;
/** Deeper levels begin where this one does. */
const maxIndents = 20;
/** Of JSON that would be longer, the indents are most of it: it is shown as it was bought. */
const maxIndented = 4 * maxShown;

/**
 * Shows text, JSON, images, and a page that no navigation opens. Offers every answer as a file.
 */
export async function showAnswer(response: Response, saveText: string): Promise<HTMLElement> {
  const bytes = await response.blob();
  const type = response.headers.get("Content-Type") ?? "";
  const url = URL.createObjectURL(bytes);
  const save = element("a", { class: "button", href: url, download: nameOf(response) }, saveText);
  const isFile = /^\s*attachment\b/i.test(response.headers.get("Content-Disposition") ?? "");
  const shown = isFile && isPage(type) ? undefined : await viewOf(bytes, type);
  // Nothing can be shown: the file is what was bought.
  if (shown === undefined) queueMicrotask(() => save.click());
  return element("div", { class: "answer" }, ...(shown === undefined ? [] : [shown]), save);
}

async function viewOf(bytes: Blob, type: string): Promise<HTMLElement | undefined> {
  if (/^image\//i.test(type)) return element("img", { src: await dataUrlOf(bytes), alt: "" });
  if (isPage(type)) {
    if (bytes.size > maxPage) return undefined;
    // No script, form or style of it runs here, and nothing of this page is in its reach.
    const srcdoc = await textOf(bytes, type);
    return element("iframe", { srcdoc, sandbox: "", title: document.title });
  }
  const isText = /^text\/|[/+](?:json|xml|yaml|javascript)\b/i.test(type);
  if (!isText || bytes.size > maxShown) return undefined;
  const text = await textOf(bytes, type);
  return element("pre", { tabindex: "0" }, /json/i.test(type) ? indent(text) : text);
}

function isPage(type: string): boolean {
  return /^(?:text\/html|application\/xhtml\+xml)\b/i.test(type);
}

async function textOf(bytes: Blob, type: string): Promise<string> {
  const [, charset = "utf-8"] = /;\s*charset="?([\w:.-]+)/i.exec(type) ?? [];
  try {
    return new TextDecoder(charset).decode(await bytes.arrayBuffer());
  } catch {
    return bytes.text();
  }
}

/** JSON with line breaks. Its tokens stay as they were bought: a parsed number loses digits. */
function indent(text: string): string {
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  let depth = 0;
  const line = (step = 0) => {
    depth += step;
    return `\n${"  ".repeat(Math.min(depth, maxIndents))}`;
  };
  const indented = text
    .trim()
    .replace(/"(?:[^"\\]|\\.)*"|\{\s*\}|\[\s*\]|\s+|[{}[\],:]/g, (token) => {
      if (token.startsWith('"')) return token;
      if (token === "{" || token === "[") return token + line(1);
      if (token === "}" || token === "]") return line(-1) + token;
      if (token === ",") return token + line();
      return token === ":" ? ": " : token.replace(/\s+/, "");
    });
  return indented.length > maxIndented ? text : indented;
}

function dataUrlOf(bytes: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(bytes);
  });
}

function nameOf(response: Response): string {
  const disposition = response.headers.get("Content-Disposition") ?? "";
  const [, named] = /filename="?([^";]+)"?/i.exec(disposition) ?? [];
  const last = location.pathname.split("/").pop() ?? "";
  return (named ?? last).replace(/[^\w.-]+/g, "_") || "answer";
}
