// Sells GET /weather for $0.001 behind nginx, under the address of nginx.
import { paymentMiddleware } from "@coinslot/express";
import { createFacilitator } from "@coinslot/facilitator";
import express from "express";

const { COINSLOT_RPC_URL, FACILITATOR_PRIVATE_KEY, PAY_TO, PORT = 4021 } = process.env;
const { COINSLOT_PUBLIC_URL: publicUrl = "http://localhost:8080" } = process.env;
const network = "eip155:9745"; // Plasma

const facilitator = createFacilitator({
  networks: [{ network, rpcUrls: [COINSLOT_RPC_URL], relayer: FACILITATOR_PRIVATE_KEY }],
  ledger: process.env.COINSLOT_LEDGER ?? "sqlite:./coinslot.db",
});

const accepts = { scheme: "exact", network, price: "$0.001", payTo: PAY_TO };
const gate = paymentMiddleware(
  { "GET /weather": { accepts, description: "Weather data", mimeType: "application/json" } },
  facilitator,
  { publicUrl }, // offers name this address, not the one behind the proxy
);

const app = express();
app.set("trust proxy", "loopback"); // limits count the buyer's address, not the proxy's
app.use(gate);
app.get("/weather", ({ ip }, response) => response.json({ forecast: "sun", soldTo: ip }));

await gate.ready();
app.listen(PORT, "127.0.0.1", () => console.log(`${publicUrl}/weather costs $0.001`));
