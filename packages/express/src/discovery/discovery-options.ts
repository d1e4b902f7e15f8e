import type { RequestHandler } from "express";
import { isRecord } from "../is-record.ts";
import { dialectOf } from "../routes/path-dialect.ts";
import { findGate, type ListedGate } from "./listed-gate.ts";
import { type PathTemplate, templateOf } from "./path-template.ts";

/** A middleware of `paymentMiddleware`, and its place in the application. */
export interface MountedGate {
  gate: RequestHandler;
  /** The path of `app.use`, where the keys are relative to it, such as `/v2`. */
  mountPath?: string | undefined;
}

/** Facts about a service for `paymentMiddleware.discovery`. Public, as all of a document is. */
export interface DiscoveryOptions {
  /** Name of the service. Default: the host of the public URL, or `Paid API`. */
  title?: string | undefined;
  /** Version of the API. Default `1.0.0`. */
  version?: string | undefined;
  /** One or two sentences about the service. */
  description?: string | undefined;
  /** Contact of the seller. Directories ask for one. */
  contact?: { name?: string; email?: string; url?: string } | undefined;
  /**
   * Advice for agents, of at most 3,400 characters. Some lines on how to pay follow it.
   */
  guidance?: string | undefined;
  /** Categories of the service, for directories. */
  categories?: readonly string[] | undefined;
  /** Pages about the service: absolute URLs, or paths. */
  docs?: { homepage?: string; apiReference?: string } | undefined;
}

/** Parsed arguments of `paymentMiddleware.discovery`. */
export interface DiscoverySettings {
  gates: readonly PlacedGate[];
  /** Of the first gate that has one. */
  publicUrl: string | undefined;
  title: string;
  version: string;
  description: string | undefined;
  contact: object | undefined;
  guidance: string | undefined;
  categories: readonly string[];
  docs: object;
}

/** A gate under its mount path. */
export interface PlacedGate {
  middleware: RequestHandler;
  gate: ListedGate;
  mount: PathTemplate | undefined;
}

const members = ["title", "version", "description", "contact", "guidance", "categories", "docs"];
/** With the lines that follow it stays below the 4,000 of `@agentcash/discovery`. */
const maxGuidance = 3_400;
const maxWords = 1_024;

/** Reads the arguments, and reports every problem. Trusts no types: sellers write JavaScript. */
export function readDiscovery(
  gates: unknown,
  options: unknown,
  tell: (problem: string) => void,
): DiscoverySettings {
  const values = isRecord(options) ? options : {};
  if (!isRecord(options)) tell("the options must be an object");
  reportUnknown(values, members, { at: "options", tell });
  const placed = readGates(gates, tell);
  const urls = new Set(placed.flatMap(({ gate }) => gate.settings.publicUrl ?? []));
  if (urls.size > 1) tell(`the gates have different public URLs: ${[...urls].join(", ")}`);
  const [publicUrl] = urls;
  const text = (name: string, max = maxWords) =>
    readText(values[name], { name: `options.${name}`, max, tell });
  return {
    gates: placed,
    publicUrl,
    title: text("title") ?? (publicUrl === undefined ? "Paid API" : new URL(publicUrl).host),
    version: text("version") ?? "1.0.0",
    description: text("description"),
    contact: readTexts(values.contact, ["name", "email", "url"], { at: "options.contact", tell }),
    guidance: text("guidance", maxGuidance),
    categories: readCategories(values.categories, tell),
    docs: readDocs(values.docs, tell),
  };
}

function readGates(value: unknown, tell: (problem: string) => void): PlacedGate[] {
  const entries: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (entries.length === 0) tell("name at least one middleware");
  return entries.flatMap((entry, index) => {
    const at = Array.isArray(value) ? `gates[${index}]` : "the gate";
    const { gate: middleware, mountPath, ...others } = isRecord(entry) ? entry : { gate: entry };
    reportUnknown(others, [], { at, tell });
    const gate = isHandler(middleware) ? findGate(middleware) : undefined;
    if (!isHandler(middleware) || gate === undefined) {
      tell(`${at} must be a middleware that paymentMiddleware of this package has made`);
      return [];
    }
    if (mountPath === undefined || mountPath === "/")
      return [{ middleware, gate, mount: undefined }];
    const isPath = typeof mountPath === "string" && mountPath.startsWith("/");
    const mount =
      isPath && !mountPath.endsWith("/")
        ? templateOf(mountPath, dialectOf(gate.router))
        : undefined;
    if (mount === undefined) {
      tell(`${at}: mountPath must be a path such as "/v2", without a slash at its end`);
    }
    return [{ middleware, gate, mount }];
  });
}

function isHandler(value: unknown): value is RequestHandler {
  return typeof value === "function";
}

interface Reading {
  at: string;
  tell: (problem: string) => void;
}

function reportUnknown(
  value: Record<string, unknown>,
  known: readonly string[],
  { at, tell }: Reading,
): void {
  for (const name of Object.keys(value)) {
    if (!known.includes(name)) tell(`${at}.${name} is unknown`);
  }
}

function readText(
  value: unknown,
  { name, max, tell }: { name: string; max: number; tell: (problem: string) => void },
): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value === "string" && value.trim() !== "" && value.length <= max) return value;
  tell(`${name} must be a text of at most ${max} characters`);
  return undefined;
}

/** Reads an object of texts; `undefined` where it is not set, or has none. */
function readTexts(
  value: unknown,
  names: readonly string[],
  { at, tell }: Reading,
): Record<string, string> | undefined {
  if (value === undefined) return undefined;
  if (!isRecord(value)) {
    tell(`${at} must be an object with ${names.join(", ")}`);
    return undefined;
  }
  reportUnknown(value, names, { at, tell });
  const read = names.flatMap((name) => {
    const text = readText(value[name], { name: `${at}.${name}`, max: maxWords, tell });
    return text === undefined ? [] : [[name, text] as const];
  });
  return read.length === 0 ? undefined : Object.fromEntries(read);
}

function readCategories(value: unknown, tell: (problem: string) => void): readonly string[] {
  if (value === undefined) return [];
  const entries: readonly unknown[] = Array.isArray(value) ? value : [];
  const texts = entries.filter((entry) => typeof entry === "string");
  if (texts.length !== entries.length || texts.length === 0) {
    tell("options.categories must be a list of texts");
  }
  return texts;
}

function readDocs(value: unknown, tell: (problem: string) => void): object {
  const at = "options.docs";
  const docs = readTexts(value, ["homepage", "apiReference"], { at, tell }) ?? {};
  for (const [name, text] of Object.entries(docs)) {
    if (!/^(?:https?:\/\/|\/)\S*$/.test(text)) tell(`${at}.${name} must be a URL, or a path`);
  }
  return docs;
}
