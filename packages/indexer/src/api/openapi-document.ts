import * as z from "zod";
import { apiPrefix, needsOwner, type Operation, operations } from "./operations.ts";
import { documentation } from "./wire/documentation.ts";
import { errorBody } from "./wire/error.ts";

type Json = Record<string, unknown>;

/** The access settings of the router, as documented. */
export interface OpenApiOptions {
  authStatus: "specified" | "live";
  /** True if keys are required at all. */
  hasKeys: boolean;
}

/** Builds the OpenAPI 3.1 document of the API from the schemas that check its requests. */
export function buildOpenApiDocument({ authStatus, hasKeys }: OpenApiOptions): Json {
  const schemas: Json = {};

  /** zod puts schemas that have an id under `$defs`; here they are shared by the whole document. */
  function schemaOf(schema: z.ZodType, io: "input" | "output"): Json {
    const converted = z.toJSONSchema(schema, { metadata: documentation, io });
    const { $schema: _, $defs = {}, ...own } = moveReferences(converted);
    Object.assign(schemas, $defs);
    return own;
  }

  function describe(id: string, operation: Operation): Json {
    const { tag, summary, description, limit, params, query, body } = operation;
    const isOpen = hasKeys && authStatus === "live" && operation.isOpenWhenLive === true;
    return {
      operationId: id,
      tags: [tag],
      summary,
      ...(description !== undefined && { description }),
      ...(isOpen && { security: [] }),
      "x-rate-limit": { max: limit.max, windowSeconds: limit.windowMs / 1_000 },
      parameters: [
        ...parametersIn("path", params, schemaOf),
        ...parametersIn("query", query, schemaOf),
        ...(id === "getTokenTransfers" ? [lastEventId] : []),
      ],
      ...(body !== undefined && {
        requestBody: { required: true, content: jsonContent(schemaOf(body, "input")) },
      }),
      responses: responsesOf(id, operation, isOpen),
    };
  }

  function responsesOf(id: string, operation: Operation, isOpen: boolean): Json {
    const { answer, otherAnswers = {}, errors = [], summary } = operation;
    const isHistory = id === "getTokenTransfers";
    const denials = !hasKeys || isOpen ? [] : authStatus === "live" ? [401, 403] : [401];
    const others = Object.entries(otherAnswers).map(([status, { description, schema }]) => [
      status,
      { description, content: jsonContent(schemaOf(schema, "output")) },
    ]);
    return {
      200: {
        description: summary,
        headers: isHistory ? { ...limitHeaders, Link: linkHeader } : limitHeaders,
        content: {
          ...jsonContent(schemaOf(answer, "output")),
          ...(isHistory && textContent),
        },
      },
      ...Object.fromEntries(others),
      ...Object.fromEntries(
        [...errors, ...denials, 429, 500].map((status) => [
          status,
          { $ref: `#/components/responses/${errorNames[status]}` },
        ]),
      ),
    };
  }

  const paths: Record<string, Json> = {};
  for (const [id, operation] of Object.entries(operations)) {
    if (!hasKeys && needsOwner(operation)) continue;
    const path = `${apiPrefix}${operation.path}`;
    paths[path] = { ...paths[path], [operation.method]: describe(id, operation) };
  }
  schemaOf(errorBody, "output");

  return {
    openapi: "3.1.0",
    info: {
      title: "Token transfers and balances",
      version: "1.0.0",
      summary: "Transfer histories and balances of tokens on EVM chains.",
    },
    servers: [{ url: "." }],
    tags: [...new Set(Object.values(operations).map(({ tag }) => tag))]
      .filter((tag) => hasKeys || !needsOwner({ tag }))
      .map((name) => ({ name })),
    security: hasKeys ? [{ ApiKeyAuth: [] }] : [],
    paths,
    components: {
      ...(hasKeys && {
        securitySchemes: { ApiKeyAuth: { type: "apiKey", in: "header", name: "x-api-key" } },
      }),
      responses: errorResponses,
      schemas,
    },
  };
}

const errorNames: Readonly<Record<number, string>> = {
  400: "BadRequest",
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  413: "TooLarge",
  415: "WrongMediaType",
  429: "RateLimited",
  500: "ServerError",
};

const seconds = { type: "integer", minimum: 1 };
const text = { type: "string" };
const limitHeaders = {
  "RateLimit-Policy": { description: "Quota (q) and window in seconds (w).", schema: text },
  RateLimit: { description: "Remaining requests (r), seconds to the next (t).", schema: text },
};
const linkHeader = {
  description:
    'The next page, as a path relative to this server, with rel="next"; absent on the last page.',
  schema: text,
};
const textContent = { "text/csv": { schema: text }, "text/event-stream": { schema: text } };
const lastEventId = {
  name: "Last-Event-ID",
  in: "header",
  required: false,
  description: "The id of the last event that was seen, to resume a stream of events.",
  schema: text,
};

const errorResponses: Json = {
  BadRequest: errorResponse("Something that was sent is wrong; the message names it."),
  Unauthorized: errorResponse("The key is missing, wrong or expired."),
  Forbidden: errorResponse("The key is missing or wrong."),
  NotFound: errorResponse("Not found."),
  TooLarge: errorResponse("The body is too large."),
  WrongMediaType: errorResponse("The body is not JSON."),
  RateLimited: {
    ...errorResponse("Over the limit."),
    headers: {
      "Retry-After": { description: "Seconds until the window ends.", schema: seconds },
      ...limitHeaders,
    },
  },
  ServerError: errorResponse("The server failed."),
};

function errorResponse(description: string) {
  return { description, content: jsonContent({ $ref: "#/components/schemas/Error" }) };
}

function jsonContent(schema: Json): Json {
  return { "application/json": { schema } };
}

function parametersIn(
  place: "path" | "query",
  schema: z.ZodObject | undefined,
  schemaOf: (schema: z.ZodType, io: "output") => Json,
): Json[] {
  return Object.entries(schema?.shape ?? {}).map(([name, parameter]) => {
    const { description, ...rules } = schemaOf(parameter, "output");
    return {
      name,
      in: place,
      required: place === "path",
      ...(description !== undefined && { description }),
      schema: rules,
    };
  });
}

/** References into `$defs` become references into the document's components. */
function moveReferences(schema: unknown): Json & { $defs?: Json } {
  const text = JSON.stringify(schema).replaceAll('"#/$defs/', '"#/components/schemas/');
  return JSON.parse(text);
}
