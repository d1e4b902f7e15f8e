import { createHmac } from "node:crypto";
import { ConfigurationError } from "@coinslot/protocol";

/** Proves the sender of an event, in headers. */
export type SignEvent = (event: {
  id: string;
  body: string;
  nowMs: number;
}) => Record<string, string>;

const secretForm = /^whsec_([A-Za-z0-9+/]{32,86}={0,2})$/;

/**
 * Signs by the Standard Webhooks scheme (standardwebhooks.com): `v1,` and base64 of the HMAC-SHA256
 * over `<id>.<unix seconds>.<body>`. Each of several secrets adds a signature, so that a receiver
 * can rotate secrets.
 *
 * @param subject Owner of the secrets, for the error
 * @throws ConfigurationError if a secret is not `whsec_` and 24 to 64 bytes in base64
 */
export function createSigner(secrets: readonly string[], subject = "The webhooks"): SignEvent {
  const keys = secrets.map((secret) => readSecret(secret, subject));
  return function signEvent({ id, body, nowMs }) {
    const timestamp = String(Math.floor(nowMs / 1_000));
    const headers = { "webhook-id": id, "webhook-timestamp": timestamp };
    if (keys.length === 0) return headers;
    const signatures = keys.map((key) => {
      const digest = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`);
      return `v1,${digest.digest("base64")}`;
    });
    return { ...headers, "webhook-signature": signatures.join(" ") };
  };
}

/** Returns whether a text is a secret of the Standard Webhooks scheme. */
export function isEventSecret(text: string): boolean {
  const encoded = secretForm.exec(text)?.[1];
  if (encoded === undefined) return false;
  const key = Buffer.from(encoded, "base64");
  const isWhole = key.toString("base64").replace(/=+$/, "") === encoded.replace(/=+$/, "");
  return isWhole && key.length >= 24 && key.length <= 64;
}

function readSecret(secret: string, subject: string): Buffer {
  if (isEventSecret(secret)) return Buffer.from(secret.slice("whsec_".length), "base64");
  const problem = "the secret must be whsec_ and 24 to 64 random bytes in base64";
  throw new ConfigurationError(subject, [problem]);
}
