import { FacilitatorError } from "@coinslot/protocol";
import supertest from "supertest";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createBuyer } from "./testing/buyer.ts";
import { openShop, option, type Shop } from "./testing/shop.ts";

const opened: Shop[] = [];
const secret = "https://rpc.example/v2/secret-key";

afterEach(async () => {
  vi.restoreAllMocks();
  await Promise.all(opened.splice(0).map((shop) => shop.close()));
});

describe("a node's URL", () => {
  it.each([
    ["a facilitator's bug", () => Promise.reject(new Error(`Request to ${secret} failed`))],
    [
      "a facilitator's fault with its cause",
      () =>
        Promise.reject(
          new FacilitatorError("The chain cannot be reached", {
            kind: "unavailable",
            cause: new Error(secret),
          }),
        ),
    ],
    [
      "words in a receipt",
      async () => ({
        success: false,
        errorReason: `Request to ${secret} failed`,
        errorMessage: secret,
        transaction: "",
        network: "eip155:9745",
      }),
    ],
  ])("appears in no answer and in no line on standard error after %s", async (_case, onSettle) => {
    const lines: string[] = [];
    vi.spyOn(console, "error").mockImplementation((line) => void lines.push(String(line)));
    const shop = await openShop({
      routes: { "GET /paid": { accepts: option() } },
      options: { onError: undefined },
      serve(app) {
        app.get("/paid", (_request, response) => void response.send("content"));
      },
    });
    opened.push(shop);
    shop.facilitator.onSettle = onSettle;
    const { headers } = await createBuyer().payFor(`${shop.url}/paid`);
    const answer = await supertest(shop.url).get("/paid").set(headers);
    expect([402, 503]).toContain(answer.status);
    const receipt = Buffer.from(answer.get("PAYMENT-RESPONSE") ?? "", "base64").toString();
    const printed = `${answer.text}${receipt}${lines.join()}`;
    expect(printed).not.toContain("secret-key");
    expect(printed).not.toContain("rpc.example");
  });
});
