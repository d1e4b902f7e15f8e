import { headerName } from "@coinslot/protocol";
import type { DiscoverySettings } from "./discovery-options.ts";
import { writeGuidance } from "./guidance.ts";
import type { ListedRoute } from "./list-routes.ts";
import { isListedMethod } from "./listed-method.ts";
import { type TemplateParameter, writeTemplate } from "./path-template.ts";
import { type PricedRoute, priceRoute } from "./priced-route.ts";

/** Path of the text for agents, at the root of an origin. */
export const llmsPath = "/llms.txt";

/**
 * The OpenAPI document of some routes, of which no two have one method and path, as JSON in pieces:
 * one for each path. Methods without an operation in OpenAPI are left out.
 */
export function* writeOpenApi(
  routes: readonly ListedRoute[],
  settings: DiscoverySettings,
): Generator<string> {
  const guidance = yield* writeGuidance(routes, settings);
  const head = JSON.stringify(writeHead(guidance, settings));
  yield `${head.slice(0, -1)},"paths":{`;
  let separator = "";
  for (const piece of writePaths(routes)) {
    yield separator + piece;
    separator = ",";
  }
  yield "}}";
}

function writeHead(guidance: string, settings: DiscoverySettings): object {
  const { title, version, description, contact, publicUrl, categories, docs } = settings;
  return {
    openapi: "3.1.0",
    info: {
      title,
      version,
      ...(description === undefined ? {} : { description }),
      ...(contact === undefined ? {} : { contact }),
      "x-guidance": guidance,
    },
    // Without it, paths are relative to the origin of the document.
    ...(publicUrl === undefined ? {} : { servers: [{ url: publicUrl }] }),
    security: [],
    "x-service-info": {
      ...(categories.length === 0 ? {} : { categories }),
      docs: { ...docs, llms: (publicUrl ?? "") + llmsPath },
    },
    ...(publicUrl === undefined
      ? {}
      : { "x-agentcash-guidance": { llmsTxtUrl: publicUrl + llmsPath } }),
    components,
  };
}

/** Routes of one path share one template: that of the first, whose parameters name all. */
function* writePaths(routes: readonly ListedRoute[]): Generator<string> {
  for (const [first, ...others] of groupByShape(routes).values()) {
    const { parameters } = first.template;
    const operations = [first, ...others].map((route) => {
      return [route.method.toLowerCase(), writeOperation(priceRoute(route), parameters)] as const;
    });
    const item = JSON.stringify(Object.fromEntries(operations));
    yield `${JSON.stringify(writeTemplate(first.template))}:${item}`;
  }
}

type Group = [ListedRoute, ...ListedRoute[]];

function groupByShape(routes: readonly ListedRoute[]): ReadonlyMap<string, Group> {
  const groups = new Map<string, Group>();
  for (const route of routes) {
    if (!isListedMethod(route.method)) continue;
    const group = groups.get(route.shape);
    if (group === undefined) groups.set(route.shape, [route]);
    else group.push(route);
  }
  return groups;
}

function writeOperation(
  { route, method, template, discovery, payment }: PricedRoute,
  names: readonly TemplateParameter[],
): object {
  const { responseSchema: schema } = discovery;
  const { mimeType = schema && "application/json" } = route;
  const isMediaType = mimeType !== undefined && /^[\w.+-]+\/[\w.+*-]+(?:\s*;.*)?$/.test(mimeType);
  const body = bodyOf(method, discovery.requestBody);
  return {
    summary: discovery.summary ?? route.description ?? `${method} ${writeTemplate(template)}`,
    parameters: [
      ...template.parameters.map((own, index) => pathParameter(own, { names, index, discovery })),
      ...discovery.parameters.filter((parameter) => parameter.in !== "path"),
      ...Object.keys(components.parameters).map(referTo("parameters")),
    ],
    ...(body === undefined ? {} : { requestBody: body }),
    responses: {
      "200": {
        description: "The paid answer",
        ...(isMediaType ? { content: { [mimeType]: schema === undefined ? {} : { schema } } } : {}),
      },
      "402": referTo("responses")("PaymentRequired"),
    },
    "x-payment-info": payment,
  };
}

function pathParameter(
  own: TemplateParameter,
  context: {
    /** Of the first route with this path. */
    names: readonly TemplateParameter[];
    index: number;
    discovery: PricedRoute["discovery"];
  },
): object {
  const { names, index, discovery } = context;
  const told = discovery.parameters.find(
    ({ in: place, name }) => place === "path" && name === own.name,
  );
  return {
    ...(own.isRest ? { description: "May hold slashes" } : {}),
    schema: { type: "string" },
    ...told,
    name: names[index]?.name ?? own.name,
    in: "path",
    required: true,
  };
}

const withBody = new Set(["POST", "PUT", "PATCH"]);
const anyBody = { content: { "*/*": { schema: {} } } };

function bodyOf(method: string, told: object | undefined): object | undefined {
  if (method === "GET" || method === "HEAD" || method === "TRACE") return undefined;
  return told ?? (withBody.has(method) ? anyBody : undefined);
}

function referTo(kind: "parameters" | "responses"): (name: string) => object {
  return (name) => ({ $ref: `#/components/${kind}/${name}` });
}

/** Shared by all operations: 10,000 of them stay below the 10 MB that `mppx` reads. */
const components = {
  parameters: {
    Payment: {
      name: headerName.paymentSignature,
      in: "header",
      required: false,
      description: "The signed payment of x402 version 2, in base64",
      schema: { type: "string" },
    },
    IdempotencyKey: {
      name: "Idempotency-Key",
      in: "header",
      required: false,
      description: "With the same payment it brings a lost answer again",
      schema: { type: "string", minLength: 16 },
    },
  },
  responses: {
    PaymentRequired: {
      description: "Payment Required. The offer in its headers and body goes before this document",
      headers: {
        [headerName.paymentRequired]: {
          description: "The offer of x402 version 2, in base64",
          schema: { type: "string" },
        },
        [headerName.authenticate]: {
          description: "Challenges of MPP",
          schema: { type: "string" },
        },
      },
      content: { "application/json": { schema: { type: "object" } } },
    },
  },
};
