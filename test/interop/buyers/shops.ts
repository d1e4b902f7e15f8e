import { type Devnet, type Listening, listen } from "@coinslot/devnet";
import { paymentMiddleware } from "@coinslot/express";
import type { CoinslotFacilitator } from "@coinslot/facilitator";
import { expressVersions } from "../../support/express-versions.ts";
import { usdcOffer } from "../../support/usdc-devnet.ts";

/** A seller of weather: a flow of payment, on a version of Express. */
export interface Shop {
  /** As the documentation names it. */
  name: string;
  /** Sells `GET /weather`, with the offers of all three wires. */
  start(devnet: Devnet, facilitator: CoinslotFacilitator): Promise<RunningShop>;
}

/** A shop, and how its handler has run. */
interface RunningShop extends Listening {
  runs(): number;
  /** The wire of the last paid request. */
  paidBy(): string | undefined;
}

/** Every shop: both flows on both versions of Express. */
export const shops: readonly Shop[] = expressVersions.flatMap(({ name: version, express }) =>
  (["authorization", "upfront"] as const).map((paymentFlow) => ({
    name: `${version}, ${paymentFlow === "upfront" ? "`upfront`" : "handler first"}`,
    async start(devnet, facilitator) {
      const route = { accepts: usdcOffer(devnet), paymentFlow };
      const options = { legacyNetworkNames: true };
      const gate = paymentMiddleware({ "GET /weather": route }, facilitator, options);
      await gate.ready();
      let runs = 0;
      let paidBy: string | undefined;
      const app = express();
      app.use((request, _response, next) => {
        paidBy = wireOf(request.headers) ?? paidBy;
        next();
      });
      app.use(gate);
      app.get("/weather", (_request, response) => {
        runs += 1;
        response.json({ forecast: "sun" });
      });
      const listening = await listen(app);
      return { ...listening, runs: () => runs, paidBy: () => paidBy };
    },
  })),
);

function wireOf(headers: NodeJS.Dict<string | string[]>): string | undefined {
  if (headers["x-payment"] !== undefined) return "x402, version 1";
  if (headers["payment-signature"] !== undefined) return "x402, version 2";
  return headers.authorization === undefined ? undefined : "MPP";
}
