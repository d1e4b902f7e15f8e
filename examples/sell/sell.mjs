// Sells GET /weather/:city for $0.001. This process verifies and settles the payments.
import { paymentMiddleware } from "@coinslot/express";
import { createFacilitator } from "@coinslot/facilitator";
import express from "express";

const { COINSLOT_RPC_URL, FACILITATOR_PRIVATE_KEY, PAY_TO, PORT = 4021 } = process.env;
const network = "eip155:9745"; // Plasma

const facilitator = createFacilitator({
  networks: [{ network, rpcUrls: [COINSLOT_RPC_URL], relayer: FACILITATOR_PRIVATE_KEY }],
  ledger: process.env.COINSLOT_LEDGER ?? "sqlite:./coinslot.db",
}).onAfterSettle(({ result }) => console.log("settled:", result.success, result.transaction));

const gate = paymentMiddleware(
  {
    "GET /weather/:city": {
      accepts: { scheme: "exact", network, price: "$0.001", payTo: PAY_TO },
      description: "The weather of a city",
      mimeType: "application/json",
    },
  },
  facilitator,
);

const app = express();
app.use(gate);
app.get("/weather/:city", ({ params, payment }, response) => {
  response.json({ city: params.city, forecast: "sun", soldTo: payment.payer });
});
app.get("/", (_request, response) => response.json({ try: "/weather/hamburg" })); // free

await gate.ready(); // throws all configuration faults in one error
app.listen(PORT, () => console.log(`http://localhost:${PORT}/weather/hamburg costs $0.001`));
