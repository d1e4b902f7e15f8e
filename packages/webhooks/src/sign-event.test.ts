import { randomBytes } from "node:crypto";
import { ConfigurationError } from "@coinslot/protocol";
import { Webhook } from "standardwebhooks";
import { describe, expect, it } from "vitest";
import { createSigner, isEventSecret } from "./sign-event.ts";

function createSecret(bytes = 32): string {
  return `whsec_${randomBytes(bytes).toString("base64")}`;
}

describe("a signed event", () => {
  it.each([24, 25, 32, 64])(
    "is accepted by the Standard Webhooks library, with %i bytes of secret",
    (bytes) => {
      const secret = createSecret(bytes);
      const body = JSON.stringify({ id: "evt_1", type: "settle_started", text: "é€😀" });
      const headers = createSigner([secret])({ id: "evt_1", body, nowMs: Date.now() });
      expect(new Webhook(secret).verify(body, headers)).toEqual(JSON.parse(body));
      expect(() => new Webhook(secret).verify(`${body} `, headers)).toThrow();
      expect(() => new Webhook(createSecret()).verify(body, headers)).toThrow();
    },
  );

  it("is signed with both secrets during a rotation", () => {
    const secrets = [createSecret(), createSecret()];
    const headers = createSigner(secrets)({ id: "evt_1", body: "{}", nowMs: Date.now() });
    for (const secret of secrets) expect(new Webhook(secret).verify("{}", headers)).toEqual({});
  });

  it("has an id and a time, and no signature, without a secret", () => {
    const headers = createSigner([])({ id: "evt_1", body: "{}", nowMs: 1_700_000_000_999 });
    expect(headers).toEqual({ "webhook-id": "evt_1", "webhook-timestamp": "1700000000" });
  });
});

describe("a webhook secret", () => {
  it.each([
    ["has no prefix", randomBytes(32).toString("base64")],
    ["is too short", createSecret(23)],
    ["is too long", createSecret(65)],
    ["is no base64", `whsec_${"!".repeat(40)}`],
    ["is empty", ""],
  ])("is refused that %s, and not repeated in the error", (_case, secret) => {
    expect(isEventSecret(secret)).toBe(false);
    expect(() => createSigner([secret])).toThrow(ConfigurationError);
    if (secret !== "") {
      expect(() => createSigner([secret])).not.toThrow(secret.slice(6, 26));
    }
  });
});
