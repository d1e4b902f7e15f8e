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
    expect(first?.types).toHaveLength(13);
    expect(first?.types).toContain("payment.lost");
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

  it("has the id that is configured, wherever its URL moves, or a hash of the URL", () => {
    const idOf = (options: WebhookOptions) => readWebhooks([options]).webhooks?.[0]?.id;
    expect(idOf({ id: "ledger-2", url, secret })).toBe("whk_ledger-2");
    expect(idOf({ id: "ledger-2", url: "https://example.org/", secret })).toBe("whk_ledger-2");
    expect(idOf({ url, secret })).toMatch(/^whk_[0-9a-f]{16}$/);
    // The hash of a URL belongs to that URL.
    for (const id of ["", "A", "a b", "0123456789abcdef", "a".repeat(33)]) {
      expect(readWebhooks([{ id, url, secret }]).problems).toEqual([
        expect.stringMatching(/^webhooks\[0\]: id must have/),
      ]);
    }
    const twice = [
      { id: "a", url, secret },
      { id: "a", url: "https://example.org/", secret },
    ];
    expect(readWebhooks(twice).problems).toEqual(["webhooks: one id is named twice"]);
    const same = [
      { id: "a", url, secret },
      { url, secret },
    ];
    expect(readWebhooks(same).problems).toEqual(["webhooks: one URL is named twice"]);
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
