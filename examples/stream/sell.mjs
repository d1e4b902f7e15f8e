// Sells GET /ticks for $0.005: ten lines of JSON, one every 100 ms. The money moves first.
import { setInterval } from "node:timers/promises";
import { paymentMiddleware } from "@coinslot/express";
import { createFacilitator } from "@coinslot/facilitator";
import express from "express";

const { COINSLOT_RPC_URL, FACILITATOR_PRIVATE_KEY, PAY_TO, PORT = 4021 } = process.env;
const network = "eip155:9745"; // Plasma

const facilitator = createFacilitator({
  networks: [{ network, rpcUrls: [COINSLOT_RPC_URL], relayer: FACILITATOR_PRIVATE_KEY }],
  ledger: process.env.COINSLOT_LEDGER ?? "sqlite:./coinslot.db",
});

const accepts = { scheme: "exact", network, price: "$0.005", payTo: PAY_TO };
const gate = paymentMiddleware.route({ accepts, paymentFlow: "upfront" }, facilitator);

const app = express();
app.get("/ticks", gate, async ({ payment }, response) => {
  response.type("application/x-ndjson");
  const { transaction } = payment.settlement; // has happened already
  let tick = 0;
  for await (const _ of setInterval(100)) {
    tick += 1;
    response.write(`${JSON.stringify({ tick, transaction })}\n`);
    if (tick === 10 || response.destroyed) break;
  }
  response.end();
});

await gate.ready();
app.listen(PORT, () => console.log(`http://localhost:${PORT}/ticks costs $0.005`));
