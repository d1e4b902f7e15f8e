import { describe, expect, it } from "vitest";
import { readWebhookSettings } from "./webhook-settings.ts";

const secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;

function read(env: Record<string, string>) {
  const problems: string[] = [];
  return { webhooks: readWebhookSettings(env, (problem) => problems.push(problem)), problems };
}

describe("the webhooks of the environment", () => {
  it("are left as the ledger has them without a URL, and end with none", () => {
    expect(read({})).toEqual({ webhooks: undefined, problems: [] });
    expect(read({ COINSLOT_WEBHOOK_URL: " " })).toEqual({ webhooks: undefined, problems: [] });
    expect(read({ COINSLOT_WEBHOOK_URL: "none" })).toEqual({ webhooks: [], problems: [] });
  });

  it("are signed by every secret", () => {
    const env = {
      COINSLOT_WEBHOOK_URL: "https://one.example/hook, https://two.example/hook",
      COINSLOT_WEBHOOK_SECRET: `${secret},${secret}`,
    };
    const others = { secrets: [secret, secret], unsafeAllowPrivateAddresses: false };
    expect(read(env)).toEqual({
      webhooks: [
        { url: "https://one.example/hook", ...others },
        { url: "https://two.example/hook", ...others },
      ],
      problems: [],
    });
    const [first] = read({ ...env, COINSLOT_UNSAFE_PRIVATE_WEBHOOKS: "true" }).webhooks ?? [];
    expect(first?.unsafeAllowPrivateAddresses).toBe(true);
  });

  it("have problems without a secret, and with a word that is neither true nor false", () => {
    const env = { COINSLOT_WEBHOOK_URL: "https://a", COINSLOT_UNSAFE_PRIVATE_WEBHOOKS: "yes" };
    expect(read(env).problems).toEqual([
      "COINSLOT_UNSAFE_PRIVATE_WEBHOOKS: must be true or false",
      "COINSLOT_WEBHOOK_SECRET: is not set, and COINSLOT_WEBHOOK_URL is",
    ]);
  });
});
