import { formatMoney, parseMoney } from "@coinslot/protocol";
import { isRecord } from "../is-record.ts";
import { type ListedMethod, listedMethods } from "./listed-method.ts";
import { readTemplate } from "./path-template.ts";

/** A bound of a price, in US dollars: an exact decimal amount, such as `"$0.01"`. */
export type PriceBound = string | number;

/** Facts about a route for `paymentMiddleware.discovery`, beside those that its payment tells. */
export interface RouteDiscovery {
  /** One line about the route. Default: its `description`. */
  summary?: string | undefined;
  /**
   * Path templates of OpenAPI, such as `/files/{name}`, below the gate's mount path. Needed for a
   * key that is a pattern: optional parts, groups, regular expressions.
   */
  paths?: readonly string[] | undefined;
  /** Methods to list for a key of all methods. Default GET. */
  methods?: readonly ListedMethod[] | undefined;
  /** Bounds of a price that is a function, or in a token that is not known to be a dollar. */
  price?: { min?: PriceBound | undefined; max?: PriceBound | undefined } | undefined;
  /** Parameter Objects of OpenAPI. One with the name of a parameter of the path replaces that. */
  parameters?: readonly Readonly<Record<string, unknown>>[] | undefined;
  /** Request Body Object of OpenAPI. */
  requestBody?: Readonly<Record<string, unknown>> | undefined;
  /** JSON Schema of the answer. */
  responseSchema?: Readonly<Record<string, unknown>> | undefined;
}

type JsonObject = Readonly<Record<string, unknown>>;

/** Parsed facts about a route, with every default in its place. */
export interface DiscoveryTerms {
  summary: string | undefined;
  /** Empty: the key's own. */
  paths: readonly string[];
  /** `undefined`: not told. */
  methods: readonly ListedMethod[] | undefined;
  /** In dollars, as decimals. */
  bounds: { min?: string; max?: string } | undefined;
  parameters: readonly JsonObject[];
  requestBody: JsonObject | undefined;
  responseSchema: JsonObject | undefined;
}

const members = new Set([
  "summary",
  "paths",
  "methods",
  "price",
  "parameters",
  "requestBody",
  "responseSchema",
]);
const maxSummary = 1024;
/** Decimals of the most precise known token. */
const boundDecimals = 18;

/** Facts of a route that tells none. */
const plainDiscovery: DiscoveryTerms = {
  summary: undefined,
  paths: [],
  methods: undefined,
  bounds: undefined,
  parameters: [],
  requestBody: undefined,
  responseSchema: undefined,
};

/**
 * Reads the member `discovery` of a route, and reports every problem.
 *
 * @returns `false` for a route that is not listed
 */
export function readRouteDiscovery(
  value: unknown,
  tell: (problem: string) => void,
): DiscoveryTerms | false {
  if (value === undefined || value === true) return plainDiscovery;
  if (value === false) return false;
  if (!isRecord(value)) {
    tell("discovery must be false, or an object");
    return false;
  }
  for (const name of Object.keys(value)) {
    if (!members.has(name)) tell(`discovery has an unknown member: ${name}`);
  }
  const { summary } = value;
  const isSummary = typeof summary === "string" && summary.length <= maxSummary;
  if (summary !== undefined && !isSummary) {
    tell(`discovery.summary must be a string of at most ${maxSummary} characters`);
  }
  return {
    summary: isSummary ? summary : undefined,
    paths: readPaths(value.paths, tell),
    methods: readMethods(value.methods, tell),
    bounds: readBounds(value.price, tell),
    parameters: readParameters(value.parameters, tell),
    requestBody: readJson(value.requestBody, "requestBody", tell),
    responseSchema: readJson(value.responseSchema, "responseSchema", tell),
  };
}

function readPaths(value: unknown, tell: (problem: string) => void): string[] {
  if (value === undefined) return [];
  const entries: readonly unknown[] = Array.isArray(value) ? value : [];
  const paths = entries.filter((path) => typeof path === "string");
  const areTemplates = paths.every((path) => readTemplate(path) !== undefined);
  if (paths.length === 0 || paths.length !== entries.length || !areTemplates) {
    tell('discovery.paths must be a list of path templates, such as "/files/{name}"');
  }
  return paths;
}

function readMethods(value: unknown, tell: (problem: string) => void): DiscoveryTerms["methods"] {
  if (value === undefined) return undefined;
  const entries: readonly unknown[] = Array.isArray(value) ? value : [];
  const methods = listedMethods.filter((method) => entries.includes(method));
  if (methods.length === 0 || methods.length !== entries.length) {
    tell(`discovery.methods must be a list of ${listedMethods.join(", ")}, each once`);
  }
  return methods;
}

function readBounds(value: unknown, tell: (problem: string) => void): DiscoveryTerms["bounds"] {
  if (value === undefined) return undefined;
  const { min, max, ...others } = isRecord(value) ? value : {};
  const least = min === undefined ? 0n : readBound(min);
  const most = max === undefined ? undefined : readBound(max);
  const isSet = min !== undefined || max !== undefined;
  const isRead = least !== undefined && (max === undefined || most !== undefined);
  if (!isSet || !isRead || Object.keys(others).length > 0 || (most ?? least) < least) {
    tell('discovery.price must have min, max or both, in dollars: { min: "$0.01", max: "$2" }');
    return undefined;
  }
  return {
    ...(min === undefined ? {} : { min: formatMoney(least, boundDecimals) }),
    ...(most === undefined ? {} : { max: formatMoney(most, boundDecimals) }),
  };
}

function readBound(value: unknown): bigint | undefined {
  if (typeof value !== "string" && typeof value !== "number") return undefined;
  return parseMoney(String(value), boundDecimals);
}

function readParameters(value: unknown, tell: (problem: string) => void): JsonObject[] {
  if (value === undefined) return [];
  const entries: readonly unknown[] = Array.isArray(value) ? value : [];
  const parameters = entries.flatMap((entry) =>
    isRecord(entry) && isParameter(entry) ? [entry] : [],
  );
  if (parameters.length !== entries.length || !Array.isArray(value)) {
    tell("discovery.parameters must be a list of parameters of OpenAPI, each with name and in");
  }
  return parameters.flatMap((entry) => {
    const copy = readJson(entry, "parameters", tell);
    return copy === undefined ? [] : [copy];
  });
}

const places: readonly unknown[] = ["path", "query", "header", "cookie"];

function isParameter({ name, in: place }: JsonObject): boolean {
  return typeof name === "string" && name !== "" && places.includes(place);
}

/** A copy of an object as JSON, so that later changes of the seller's change nothing. */
function readJson(
  value: unknown,
  name: string,
  tell: (problem: string) => void,
): JsonObject | undefined {
  if (value === undefined) return undefined;
  try {
    const copy: unknown = JSON.parse(JSON.stringify(value));
    if (isRecord(copy)) return copy;
  } catch {
    // Reported below: a cycle, or a bigint.
  }
  tell(`discovery.${name} must be an object of JSON`);
  return undefined;
}
