import { createHash } from "node:crypto";
import { isIP } from "node:net";
import type { Request } from "express";

/** Names the client of a request; `undefined`: the client is known by its address alone. */
export type ClientKey = (request: Request) => string | undefined;

/** Longer keys are hashed: a key stays in memory while its limit counts. */
const maxKeyLength = 128;

/**
 * Derives the key under which a caller is limited. It is the client's name by `clientKey`, else the
 * address that Express derives under the application's `trust proxy`. An IPv6 address counts by its
 * /64, since one subscriber holds that many.
 *
 * @returns at most 136 characters; the two kinds of key never meet.
 */
export function limitKeyOf(request: Request, clientKey?: ClientKey): string {
  const client = clientKey?.(request);
  if (client !== undefined) return `client ${client.length > maxKeyLength ? hash(client) : client}`;
  return `address ${addressKey(request.ip) ?? addressKey(request.socket.remoteAddress) ?? "unknown"}`;
}

/** A trusted proxy may forward any text as an address: text that is none gives no key. */
function addressKey(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const address = withoutPort(text.trim()).replace(/%.*$/, "");
  const version = isIP(address);
  if (version === 0) return undefined;
  return version === 4 ? address : networkKey(readGroups(address));
}

/** Some proxies write `192.0.2.1:4711` and `[2001:db8::1]:4711`. */
function withoutPort(text: string): string {
  const found = /^\[([^\]]+)\](?::\d+)?$/.exec(text) ?? /^(\d+(?:\.\d+){3}):\d+$/.exec(text);
  return found?.[1] ?? text;
}

/** The first 64 bits, or the IPv4 address that a dual-stack socket shows as `::ffff:192.0.2.1`. */
function networkKey(groups: readonly number[]): string {
  const [high = 0, low = 0] = groups.slice(6);
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
  if (isMapped) return [high >> 8, high & 255, low >> 8, low & 255].join(".");
  const network = groups.slice(0, 4).map((group) => group.toString(16));
  return `${network.join(":")}::/64`;
}

/** The eight groups of a valid IPv6 address. */
function readGroups(address: string): number[] {
  const [head = [], tail] = address.split("::").map((part) => part.split(":").flatMap(toGroups));
  if (tail === undefined) return head;
  return [...head, ...Array<number>(8 - head.length - tail.length).fill(0), ...tail];
}

function toGroups(part: string): number[] {
  if (part === "") return [];
  if (!part.includes(".")) return [Number.parseInt(part, 16)];
  const [a = 0, b = 0, c = 0, d = 0] = part.split(".").map(Number);
  return [a * 256 + b, c * 256 + d];
}

function hash(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
