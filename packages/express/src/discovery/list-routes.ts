import { dialectOf } from "../routes/path-dialect.ts";
import type { Route } from "../routes/read-routes.ts";
import { readRouteKey } from "../routes/route-key.ts";
import type { ListedGate } from "./listed-gate.ts";
import {
  belowMount,
  type PathTemplate,
  readTemplate,
  shapeOf,
  templateOf,
} from "./path-template.ts";
import { knownRange } from "./price-info.ts";
import type { DiscoveryTerms } from "./route-discovery.ts";

/** A route under one of its methods and paths. */
export interface ListedRoute {
  gate: ListedGate;
  route: Route;
  discovery: DiscoveryTerms;
  /** Upper case. */
  method: string;
  template: PathTemplate;
}

/**
 * Lists the routes of a gate, and reports each that no list can hold.
 *
 * @param mount under which the application has mounted the gate, where its keys are relative
 */
export function listRoutes(
  gate: ListedGate,
  { mount, tell }: { mount: PathTemplate | undefined; tell: (problem: string) => void },
): ListedRoute[] {
  return gate.routes.flatMap((route) => {
    const { discovery, key, accepts } = route;
    if (discovery === false) return [];
    const { bounds } = discovery;
    const report = (problem: string): void => tell(`"${key}": ${problem}`);
    if (bounds !== undefined && knownRange(accepts) !== undefined) {
      report("discovery.price is for prices by function, and tokens that are no known dollars");
    }
    const methods = methodsOf(gate, route, { discovery, report });
    const templates = templatesOf(gate, route, { discovery, mount, report });
    for (const template of templates) reportStrangers(template, { discovery, report });
    return templates.flatMap((template) =>
      methods.map((method) => ({ gate, route, discovery, method, template })),
    );
  });
}

/** Leaves out each route whose method and path an earlier one has: the first one counts. */
export function withoutRepeats(routes: readonly ListedRoute[]): ListedRoute[] {
  const seen = new Set<string>();
  return routes.filter(({ method, template }) => {
    const shape = `${method} ${shapeOf(template)}`;
    return !seen.has(shape) && seen.add(shape);
  });
}

interface Reading {
  discovery: DiscoveryTerms;
  report: (problem: string) => void;
}

/** The key of a route; that of a route beside its handler is its name, where it has this form. */
function keyOf({ isTable, router }: ListedGate, { key, verb, path }: Route) {
  if (isTable) return { verb, path };
  const read = readRouteKey(key, router);
  return read.ok ? read.parts : undefined;
}

function methodsOf(
  gate: ListedGate,
  route: Route,
  { discovery: { methods }, report }: Reading,
): readonly string[] {
  const { verb } = keyOf(gate, route) ?? { verb: "*" };
  if (verb === "*") return methods ?? ["GET"];
  if (methods !== undefined) report("discovery.methods is for keys of all methods");
  return [verb];
}

function templatesOf(
  gate: ListedGate,
  route: Route,
  { discovery, mount, report }: Reading & { mount: PathTemplate | undefined },
): PathTemplate[] {
  const path = keyOf(gate, route)?.path;
  const found =
    discovery.paths.length > 0
      ? discovery.paths.map(readTemplate)
      : [path === undefined ? undefined : templateOf(path, dialectOf(gate.router))];
  const templates = found.flatMap((own) => {
    const full = mount && own ? belowMount(mount, own) : own;
    return full ?? [];
  });
  if (templates.length === found.length) return templates;
  report(
    gate.isTable || path !== undefined
      ? "its path has no template of OpenAPI: set discovery.paths, or discovery: false"
      : 'it has no path: name it as a key, such as "GET /report", or set discovery.paths, or discovery: false',
  );
  return [];
}

/** Reports parameters of a path that it does not have. */
function reportStrangers(template: PathTemplate, { discovery, report }: Reading): void {
  const names = new Set<unknown>(template.parameters.map(({ name }) => name));
  for (const { in: place, name } of discovery.parameters) {
    if (place === "path" && !names.has(name)) {
      report(`discovery.parameters names "${name}", which its path does not have`);
    }
  }
}
