import { startDevnet } from "@coinslot/devnet";
import {
  encodePaymentRequired,
  plasma,
  plasmaUsdt0,
  stable,
  stableUsdt0,
} from "@coinslot/protocol";
import { describe, expect, it } from "vitest";
import { answer402, payTo, requirements, startSeller } from "./testing/seller.ts";
import { useWorld } from "./testing/world.ts";

const world = useWorld();
const { keep, createFetch } = world;

describe("an offer of version 1", () => {
  it("is paid with the specification's required fields alone", async () => {
    const seller = keep(
      await startSeller({
        onUnpaid: (request, response) => {
          const entry = {
            scheme: "exact",
            network: plasma,
            maxAmountRequired: "1000",
            asset: plasmaUsdt0.address,
            resource: `http://${request.headers.host}${request.url}`,
            payTo,
          };
          response.writeHead(402, { "Content-Type": "application/json" });
          response.end(JSON.stringify({ x402Version: 1, accepts: [entry] }));
          return true;
        },
      }),
    );
    const response = await createFetch()(`${seller.url}/weather`);
    expect(response.status).toBe(200);
    expect(seller.paid[0]?.request.headers).toHaveProperty("x-payment");
  });

  it("has its legacy network name repeated", async () => {
    const stableNet = await startDevnet({ chainId: 988 });
    try {
      await stableNet.mint({ to: world.account().address, amount: 5000n });
      const seller = keep(
        await startSeller({
          onUnpaid: (request, response) => {
            const entry = {
              ...requirements(),
              network: "stable",
              maxAmountRequired: "1000",
              asset: stableUsdt0.address,
              resource: `http://${request.headers.host}/`,
            };
            response.writeHead(402).end(JSON.stringify({ x402Version: 1, accepts: [entry] }));
            return true;
          },
        }),
      );
      const response = await createFetch({ rpcUrls: { [stable]: stableNet.rpcUrl } })(seller.url);
      expect(response.status).toBe(200);
      expect(seller.paid[0]?.payload).toMatchObject({ x402Version: 1, network: "stable" });
    } finally {
      await stableNet.stop();
    }
  });
});

describe("an offer of version 2", () => {
  it("is preferred when an answer offers both versions", async () => {
    const seller = keep(
      await startSeller({
        onUnpaid: (request, response) => {
          const url = `http://${request.headers.host}/`;
          const v1 = { ...requirements(), maxAmountRequired: "1000", resource: url };
          const offer = { x402Version: 2 as const, resource: { url }, accepts: [requirements()] };
          response.writeHead(402, { "PAYMENT-REQUIRED": encodePaymentRequired(offer) });
          response.end(JSON.stringify({ x402Version: 1, accepts: [v1] }));
          return true;
        },
      }),
    );
    await createFetch()(seller.url);
    expect(seller.paid[0]?.payload.x402Version).toBe(2);
  });

  it("has its accepted entry, resource and extensions repeated unchanged", async () => {
    const accepted = {
      ...requirements(),
      "x-unknown": { deep: [1, null] },
      extra: { version: "1", name: "USDT0", mood: "good" },
    };
    const extensions = { bazaar: { info: { a: 1 } }, "payment-identifier": { info: {} } };
    const seller = keep(await startSeller({ accepts: () => [accepted], offer: { extensions } }));
    await createFetch()(`${seller.url}/weather`);
    const header = String(seller.paid[0]?.request.headers["payment-signature"]);
    const message: unknown = JSON.parse(Buffer.from(header, "base64").toString());
    expect(message).toMatchObject({
      accepted,
      resource: { url: `${seller.url}/weather` },
      extensions: {
        bazaar: { info: { a: 1 } },
        "payment-identifier": { info: { id: seller.paid[0]?.idempotencyKey } },
      },
    });
  });

  it("is read from the body when its header is unreadable", async () => {
    const seller = keep(
      await startSeller({
        onUnpaid: (request, response) => {
          response.setHeader("PAYMENT-REQUIRED", "%%%");
          const resource = `http://${request.headers.host}/`;
          answer402(response, 1, { resource, accepts: [requirements()] });
          return true;
        },
      }),
    );
    await createFetch()(seller.url);
    expect(seller.paid[0]?.payload.x402Version).toBe(1);
  });
});
