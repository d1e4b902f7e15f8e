// Sells GET /weather for $0.001. A remote facilitator verifies and settles the payments.
import { createFacilitatorClient, paymentMiddleware } from "@coinslot/express";
import express from "express";

const { FACILITATOR_URL, FACILITATOR_KEY, PAY_TO, PORT = 4021 } = process.env;

const facilitator = createFacilitatorClient({
  url: FACILITATOR_URL,
  headers: FACILITATOR_KEY === undefined ? {} : { authorization: `Bearer ${FACILITATOR_KEY}` },
});

const gate = paymentMiddleware(
  {
    "GET /weather": {
      accepts: { scheme: "exact", network: "eip155:9745", price: "$0.001", payTo: PAY_TO },
      description: "Weather data",
      mimeType: "application/json",
    },
  },
  facilitator,
);

const app = express();
app.use(gate);
app.get("/weather", (_request, response) => response.json({ forecast: "sun" }));

await gate.ready(); // throws if the facilitator does not serve the network
app.listen(PORT, () => console.log(`http://localhost:${PORT}/weather costs $0.001`));
