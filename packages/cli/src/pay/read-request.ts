import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { UsageError } from "../exit-code.ts";
import type { Io } from "../io.ts";

/** A request that can be sent again, as it is. */
export interface BuyerRequest {
  method: string;
  url: string;
  headers: [name: string, value: string][];
  body: Uint8Array | undefined;
}

/**
 * Reads the request from the arguments.
 *
 * @throws UsageError for an invalid request, and files that cannot be read
 */
export async function readRequest(options: {
  url: string;
  method?: string;
  data?: string;
  header?: readonly string[];
  io: Io;
}): Promise<BuyerRequest> {
  const { data, header = [], io, method = data === undefined ? "GET" : "POST" } = options;
  const url = URL.canParse(options.url) ? new URL(options.url) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new UsageError("<url> must be a URL with http:// or https://.");
  }
  if (!/^[A-Za-z]{1,20}$/.test(method)) throw new UsageError("--method is not an HTTP method.");
  const lines = await Promise.all(header.map((text) => headerLines(text, io)));
  const headers = lines.flat().map(readHeader);
  const body = data === undefined ? undefined : await readBody(data, io);
  if (body === undefined) return { method: method.toUpperCase(), url: url.href, headers, body };
  if (/^(?:GET|HEAD)$/i.test(method)) throw new UsageError(`${method} takes no --data.`);
  const isTold = headers.some(([name]) => name.toLowerCase() === "content-type");
  const isFile = data?.startsWith("@") === true;
  const type: [string, string] = ["content-type", contentTypeOf(body, isFile)];
  return {
    method: method.toUpperCase(),
    url: url.href,
    headers: isTold ? headers : [...headers, type],
    body,
  };
}

async function readBody(data: string, io: Io): Promise<Uint8Array> {
  if (!data.startsWith("@")) return new TextEncoder().encode(data);
  const name = data.slice(1);
  return name === "-" ? io.readInput() : readNamed(name, io);
}

async function headerLines(text: string, io: Io): Promise<string[]> {
  if (!text.startsWith("@")) return [text];
  const content = new TextDecoder().decode(await readNamed(text.slice(1), io));
  return content.split(/\r?\n/).filter((line) => line.trim() !== "");
}

async function readNamed(name: string, { folder }: Io): Promise<Uint8Array> {
  try {
    return await readFile(resolve(folder, name));
  } catch (cause) {
    throw new UsageError(`The file ${name} cannot be read.`, { cause });
  }
}

function readHeader(line: string): [string, string] {
  const [, name, value] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n\0]*)$/.exec(line) ?? [];
  // The header is not repeated: it may hold a key.
  if (name === undefined || value === undefined) {
    throw new UsageError("--header must be 'Name: value'.");
  }
  return [name, value.trim()];
}

function contentTypeOf(body: Uint8Array, isFile: boolean): string {
  try {
    JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
    return "application/json";
  } catch {
    return isFile ? "application/octet-stream" : "application/x-www-form-urlencoded";
  }
}
