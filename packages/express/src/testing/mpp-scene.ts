import { headerName, plasmaUsdt0 } from "@coinslot/protocol";
import { createMppBuyer } from "./mpp-buyer.ts";
import { openShop, option, type Shop } from "./shop.ts";

export const opened: Shop[] = [];
export const secret = "a-secret-of-a-test-with-32-bytes";

export type Change = Partial<Parameters<typeof openShop>[0]>;

export async function open(change: Change = {}): Promise<Shop & { runs: () => number }> {
  let runs = 0;
  const shop = await openShop({
    routes: {
      "GET /paid": { accepts: option() },
      "GET /other": { accepts: option() },
      "POST /paid": { accepts: option() },
      "GET /upfront": { accepts: option(), paymentFlow: "upfront" },
    },
    serve(app) {
      app.use((request, response) => {
        runs += 1;
        if (request.query.fail !== undefined) response.status(500);
        if (request.query.throw !== undefined) throw new Error("A fault of the handler");
        response.setHeader(headerName.paymentReceipt, "forged");
        response.json({ authorization: request.headers.authorization ?? null });
      });
    },
    options: { mpp: { mode: true, secrets: [secret] }, ...change.options },
    ...change,
  });
  opened.push(shop);
  return { ...shop, runs: () => runs };
}

export const buyer = createMppBuyer(plasmaUsdt0);
export const problem = (name: string) => `https://paymentauth.org/problems/${name}`;

export function priceOf() {
  const { address: asset, name, version, decimals } = plasmaUsdt0;
  return { amount: "1000", asset, extra: { name, version, decimals } };
}
