import { describe, expect, it } from "vitest";
import { readIndexerServiceConfiguration } from "./service-configuration.ts";

const secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
const chain = { INDEXER_CHAINS: "plasma", INDEXER_RPC_URLS_PLASMA: "http://localhost:8545" };
const url = "https://example.com/hook";

const read = (env: Record<string, string>) =>
  readIndexerServiceConfiguration({ env: { ...chain, ...env } }).indexer.webhooks;

describe("the receiver of the indexing service", () => {
  it("is left as the database has it without a URL, and ends with none", () => {
    expect(read({})).toBeUndefined();
    expect(read({ INDEXER_WEBHOOK_URL: "none" })).toEqual([]);
  });

  it("has an id that outlives its URL, and is signed by every secret", () => {
    const env = { INDEXER_WEBHOOK_URL: url, INDEXER_WEBHOOK_SECRET: `${secret}, ${secret}` };
    const others = { id: "default", secrets: [secret, secret] };
    expect(read(env)).toEqual([{ ...others, url, unsafeAllowPrivateAddresses: false }]);
    const owned = { ...env, INDEXER_WEBHOOK_OWNER: " shop " };
    expect(read(owned)).toMatchObject([{ id: "default", owner: "shop" }]);
    const moved = "http://10.0.0.1/hook";
    const own = { INDEXER_WEBHOOK_URL: moved, INDEXER_UNSAFE_PRIVATE_WEBHOOKS: "true" };
    expect(read({ ...env, ...own })).toMatchObject([{ id: "default", url: moved }]);
  });

  it.each<[string, Record<string, string>, RegExp]>([
    ["no secret", { INDEXER_WEBHOOK_URL: url }, /INDEXER_WEBHOOK_SECRET: is not set/],
    [
      "a private address",
      { INDEXER_WEBHOOK_URL: "https://10.0.0.1/", INDEXER_WEBHOOK_SECRET: secret },
      /INDEXER_WEBHOOK_URL: url must begin with https/,
    ],
    [
      "a weak secret",
      { INDEXER_WEBHOOK_URL: url, INDEXER_WEBHOOK_SECRET: "hunter2" },
      /secret must be whsec_/,
    ],
    [
      "another word than true",
      { INDEXER_UNSAFE_PRIVATE_WEBHOOKS: "yes" },
      /INDEXER_UNSAFE_PRIVATE_WEBHOOKS: must be true or false/,
    ],
  ])("has a problem with %s, which repeats no secret", (_, env, problem) => {
    const said: string[] = [];
    try {
      read(env);
    } catch (error) {
      said.push(String(error));
    }
    expect(said).toEqual([expect.stringMatching(problem)]);
    expect(said.join()).not.toContain("hunter2");
  });
});
