import { readFileSync, statSync } from "node:fs";
import { extname } from "node:path";
import { gzipSync } from "node:zlib";
import * as z from "zod";
import { RefusedError, refusals } from "../api/refusal.ts";
import type { Visit } from "../visit.ts";

/** Files that a page needs before it can show anything. */
export interface Entry {
  script: string;
  styles: readonly string[];
}

/** Built pages of the console. */
export interface Assets {
  /** `undefined` where the pages are not built. */
  entry(): Entry | undefined;
  /** Sends a built file. @throws RefusedError where there is none of this name */
  send(visit: Visit, name: string): void;
}

/** `manifest.json`, as Vite writes it. */
const manifestSchema = z.record(
  z.string(),
  z.object({
    file: z.string(),
    isEntry: z.boolean().optional(),
    css: z.array(z.string()).optional(),
  }),
);

const types: Readonly<Record<string, string>> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2",
};

/** Names that the build gives: never a path that leaves the folder. */
const nameForm = /^[\w-]+(?:\.[\w-]+)*\.(?:js|css|svg|woff2)$/;

/** Opens the folder of built pages. @param folder URL that ends with a slash */
export function openAssets(folder: URL): Assets {
  let entry: Entry | undefined;
  const files = new Map<string, BuiltFile>();

  return {
    entry() {
      entry ??= readEntry(folder);
      return entry;
    },
    send({ request, response }, name) {
      const file = files.get(name) ?? readFile(folder, name);
      if (file === undefined) throw new RefusedError(refusals.unknownPath);
      files.set(name, file);
      const zipped = takesGzip(request.headers["accept-encoding"]) ? file.zipped : undefined;
      const body = zipped ?? file.body;
      response.setHeader("Cache-Control", "public, max-age=31536000, immutable");
      response.setHeader("Vary", "Accept-Encoding");
      if (zipped !== undefined) response.setHeader("Content-Encoding", "gzip");
      response.writeHead(200, { "Content-Type": file.type, "Content-Length": body.length });
      response.end(request.method === "HEAD" ? undefined : body);
    },
  };
}

function readEntry(folder: URL): Entry | undefined {
  let text: string;
  try {
    text = readFileSync(new URL("manifest.json", folder), "utf8");
  } catch {
    return undefined;
  }
  const manifest = manifestSchema.parse(JSON.parse(text));
  const found = Object.values(manifest).find(({ isEntry }) => isEntry === true);
  return found && { script: baseName(found.file), styles: (found.css ?? []).map(baseName) };
}

/** The build may name files with the folder in which they are served. */
function baseName(file: string): string {
  return file.slice(file.lastIndexOf("/") + 1);
}

/** A file of the build: its name changes with its bytes, so it is read and compressed once. */
interface BuiltFile {
  type: string;
  body: Buffer;
  zipped?: Buffer;
}

function readFile(folder: URL, name: string): BuiltFile | undefined {
  const type = types[extname(name)];
  if (type === undefined || !nameForm.test(name)) return undefined;
  const place = new URL(name, folder);
  if (statSync(place, { throwIfNoEntry: false })?.isFile() !== true) return undefined;
  const body = readFileSync(place);
  const zipped = gzipSync(body);
  return zipped.length < body.length ? { type, body, zipped } : { type, body };
}

/** Whether `Accept-Encoding` names gzip, with a weight above 0 if any (RFC 9110, 12.5.3). */
function takesGzip(header: string | string[] | undefined): boolean {
  return /(?:^|,)\s*gzip\s*(?:$|,|;\s*q=(?!0(?:\.0*)?\s*(?:$|,)))/i.test(String(header ?? ""));
}
