import { type Devnet, listen } from "@coinslot/devnet";
import { paymentMiddleware } from "@coinslot/express";
import type { CoinslotFacilitator } from "@coinslot/facilitator";
import { afterAll, beforeAll, expect, it } from "vitest";
import * as z from "zod";
import { balanceOf } from "../support/balance.ts";
import { expressVersions } from "../support/express-versions.ts";
import { runMppx } from "../support/run-mppx.ts";
import { createTestFacilitator, priceOfWeather } from "../support/seller.ts";
import { startUsdcDevnet, usdc, usdcOffer } from "../support/usdc-devnet.ts";

const checksSchema = z.array(z.object({ label: z.string(), severity: z.string() }));
const resultSchema = z.object({
  discovery: z.object({
    valid: z.boolean(),
    endpoints: z.array(z.object({ method: z.string(), path: z.string() })),
    checks: checksSchema,
  }),
  endpoints: z.array(
    z.object({ challenge: checksSchema, errorHandling: checksSchema, payment: checksSchema }),
  ),
  summary: z.record(z.string(), z.number()),
});

let devnet: Devnet;
let facilitator: CoinslotFacilitator;

beforeAll(async () => {
  devnet = await startUsdcDevnet();
  facilitator = createTestFacilitator(devnet);
  await facilitator.ready();
});

afterAll(async () => {
  await facilitator?.close();
  await devnet?.stop();
});

it.each(expressVersions)(
  "mppx validate pays both flows on $name, and finds no fault",
  async ({ express }) => {
    const accepts = usdcOffer(devnet);
    const routes = {
      "GET /weather": { accepts },
      "POST /weather": { accepts, paymentFlow: "upfront" },
    } as const;
    const gate = paymentMiddleware(routes, facilitator);
    await gate.ready();
    const app = express().use(paymentMiddleware.discovery(gate, { title: "Weather" }), gate);
    let runs = 0;
    app.all("/weather", (_request, response) => {
      runs += 1;
      response.json({ forecast: "sun" });
    });
    const { url, close } = await listen(app);
    try {
      const before = await income();
      const { code, stdout } = await runMppx(devnet, ["validate", url, "--output-json"]);
      const { discovery, endpoints, summary } = resultSchema.parse(JSON.parse(stdout));
      expect(discovery).toMatchObject({
        valid: true,
        endpoints: [
          { method: "GET", path: "/weather" },
          { method: "POST", path: "/weather" },
        ],
      });
      const checks = [
        ...discovery.checks,
        ...endpoints.flatMap((each) => [...each.challenge, ...each.errorHandling, ...each.payment]),
      ];
      expect(checks.filter(({ severity }) => severity !== "pass")).toEqual([]);
      for (const { payment } of endpoints) {
        const labels = payment.map(({ label }) => label);
        expect(labels).toContain("Payment: successful");
        expect(labels).toContain('Receipt status is "success"');
      }
      expect(summary).toMatchObject({ passed: checks.length, failed: 0, warnings: 0, skipped: 0 });
      expect([code, runs]).toEqual([0, 2]);
      expect((await income()) - before).toBe(2n * priceOfWeather);
    } finally {
      await close();
    }
  },
);

function income(): Promise<bigint> {
  return balanceOf(devnet, devnet.accounts.seller.address, usdc);
}
