import { describe, expect, it } from "vitest";
import { readWebhooks, type WebhookOptions } from "./webhook-options.ts";

const secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
const url = "https://example.com/hook?key=1";

describe("the option webhooks", () => {
  it("is no decision where it is left out, and none where it is empty", () => {
    expect(readWebhooks(undefined)).toEqual({ webhooks: undefined, problems: [] });
    expect(readWebhooks([])).toEqual({ webhooks: [], problems: [] });
  });

  it("tells all but deliveries by default, and has one id for every secret", () => {
    const { webhooks, problems } = readWebhooks([{ url, secret }]);
    expect(problems).toEqual([]);
    const [first] = webhooks ?? [];
    expect(first?.types).toHaveLength(8);
    expect(first?.types).not.toContain("payment.delivered");
    const [again] = readWebhooks([{ url, secrets: [secret, secret] }]).webhooks ?? [];
    expect(again?.id).toBe(first?.id);
    expect(again?.secrets).toEqual([secret, secret]);
  });

  it.each<[string, WebhookOptions, RegExp]>([
    ["no URL", { url: undefined, secret }, /url must begin with https/],
    ["plain http", { url: "http://example.com", secret }, /url must begin with https/],
    ["a private address", { url: "https://10.0.0.1/", secret }, /public address/],
    ["a password", { url: "https://a:b@example.com/", secret }, /no user and password/],
    ["no secret", { url }, /secret is not set/],
    ["an unset secret", { url, secrets: [secret, undefined] }, /secret must be whsec_/],
    ["a weak secret", { url, secret: "whsec_abc" }, /secret must be whsec_/],
    ["no event", { url, secret, events: [] }, /events is empty/],
  ])("has a problem with %s", (_, options, problem) => {
    const { problems } = readWebhooks([options]);
    expect(problems).toEqual([expect.stringMatching(problem)]);
    expect(problems.join()).not.toContain("whsec_abc");
  });

  it("has a problem with a URL that is named twice", () => {
    expect(
      readWebhooks([
        { url, secret },
        { url, secret },
      ]).problems,
    ).toEqual(["webhooks: one URL is named twice"]);
  });

  it("takes private addresses where they are allowed", () => {
    const local = { url: "http://127.0.0.1:3000/hook", secret, unsafeAllowPrivateAddresses: true };
    expect(readWebhooks([local]).problems).toEqual([]);
  });
});
