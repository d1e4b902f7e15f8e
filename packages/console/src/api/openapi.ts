import type { Operation } from "@coinslot/facilitator";
import * as z from "zod";

const token = {
  ...{ name: "X-Coinslot-Token", in: "header", required: true, schema: { type: "string" } },
  description: "The session's token; `none` for a program of this machine that may read.",
};
const idempotencyKey = {
  ...{ name: "Idempotency-Key", in: "header", required: true },
  schema: { type: "string", minLength: 16, maxLength: 128 },
  description: "Names the act: a repetition gets the first answer.",
};
const confirmation = {
  ...{ name: "X-Coinslot-Confirmation", in: "header", schema: { type: "string" } },
  description: "The key, or the printed code, of an act that asks for it.",
};

/** OpenAPI 3.1 document of the console's API, from the schemas of the operations. */
export function describeApi(operations: Iterable<Operation>, base: string): object {
  const paths = [...operations].map((operation) => [
    `/api/${operation.name}`,
    { post: describeOnce(operation) },
  ]);
  return {
    openapi: "3.1.0",
    info: {
      title: "Coinslot: the operator's console",
      version: "1",
      description:
        "Each operation is a coinslot command, too. Amounts are decimal strings in the smallest unit.",
    },
    servers: [{ url: base === "" ? "/" : base }],
    paths: { ...sessionPaths, ...Object.fromEntries(paths) },
    components: { schemas: { Refusal: refusalSchema } },
  };
}

/** Anyone may ask for the document, and its schemas take ten milliseconds. */
const described = new WeakMap<Operation, object>();

function describeOnce(operation: Operation): object {
  const found = described.get(operation) ?? describeOperation(operation);
  described.set(operation, found);
  return found;
}

function describeOperation({ name, access, argument, result }: Operation): object {
  const isAct = access !== "read";
  return {
    operationId: name,
    tags: [isAct ? "acts" : "reads"],
    summary: isAct ? `Act: ${name}` : `Read: ${name}`,
    parameters: isAct ? [token, idempotencyKey, confirmation] : [token],
    requestBody: { required: true, content: json(toSchema(argument)) },
    responses: {
      200: { description: "Its result.", content: json(toSchema(result)) },
      default: refusal,
    },
  };
}

/** The wire's side of a schema: what JSON has before it is parsed. */
function toSchema(schema: z.ZodType): object {
  const { $schema: _, ...members } = z.toJSONSchema(schema, {
    io: "input",
    unrepresentable: "any",
  });
  return members;
}

function json(schema: object): object {
  return { "application/json": { schema } };
}

const refusalSchema = {
  type: "object",
  required: ["code", "message"],
  properties: {
    code: { type: "string" },
    message: { type: "string" },
    remedy: { type: "string" },
  },
};
const refusal = {
  description: "Nothing was changed, unless the status is 503: then repeat it with the same key.",
  content: json({ $ref: "#/components/schemas/Refusal" }),
};
const done = { description: "Done." };

const sessionPaths = {
  "/api/session": {
    get: { summary: "Role and session", responses: { 200: done } },
    post: {
      summary: "Sign in",
      parameters: [token],
      requestBody: {
        required: true,
        content: json({
          oneOf: ["link", "key"].map((name) => ({
            type: "object",
            required: [name],
            properties: { [name]: { type: "string" } },
          })),
        }),
      },
      responses: { 200: { description: "The token, and the cookie." }, default: refusal },
    },
    delete: {
      summary: "Sign out",
      parameters: [token],
      responses: { 204: done, default: refusal },
    },
  },
  "/api/session/link": {
    post: { summary: "Print a fresh link", parameters: [token], responses: { 202: done } },
  },
  "/api/sessions": {
    delete: {
      summary: "Sign everyone out",
      parameters: [token],
      responses: { 204: done, default: refusal },
    },
  },
  "/api/events": {
    get: {
      summary: "Changes, as server-sent events: changed, stale, ended",
      responses: {
        200: { description: "A stream.", content: { "text/event-stream": {} } },
        default: refusal,
      },
    },
  },
};
