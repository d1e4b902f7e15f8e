/** Forms of the sold requests, for the discovery document: Parameter Objects of OpenAPI. */
const text = { type: "string", minLength: 1 };

const blockchain = { description: "Name of a chain, as GET /api/v1/chains lists it", ...text };
const token = { description: "Name of a token of that chain", ...text };
const address = { description: "The owner", ...text };

const limit = { type: "integer", minimum: 1, maximum: 1_000, default: 10 };
const time = { description: "Milliseconds since the Unix epoch", type: "integer", minimum: 0 };

/** Parameters of an owner's path. */
export const ownerParameters = Object.entries({ blockchain, token, address }).map(
  ([name, schema]) => ({ name, in: "path", schema }),
);

/** Query of a transfer history. */
export const historyParameters = Object.entries({
  limit,
  fromTs: time,
  toTs: time,
  sort: { type: "string", enum: ["asc", "desc"], default: "desc" },
  cursor: { description: "End of the previous page, from its Link header", type: "string" },
}).map(([name, schema]) => ({ name, in: "query", schema }));

/** One item of a batch of balances. */
export const ownerQuery = {
  type: "object",
  properties: { blockchain, token, address },
  required: ["blockchain", "token", "address"],
};

/** One item of a batch of transfer histories. */
export const historyQuery = {
  ...ownerQuery,
  properties: { ...ownerQuery.properties, limit, fromTs: time, toTs: time },
};

/** Body of a batch of such items. */
export function batchOf(items: object, maxItems: number) {
  const schema = { type: "array", minItems: 1, maxItems, items };
  return { required: true, content: { "application/json": { schema } } };
}
