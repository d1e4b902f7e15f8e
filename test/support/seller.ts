import { type Devnet, type Listening, listen, startDevnet } from "@coinslot/devnet";
import { type PaymentOption, type PaymentRoutes, paymentMiddleware } from "@coinslot/express";
import { type CoinslotFacilitator, createFacilitator } from "@coinslot/facilitator";
import type { Facilitator } from "@coinslot/protocol";
import express from "express";

/** Price of one weather report in these tests: 0.001 of the token. */
export const priceOfWeather = 1000n;

/** Our facilitator in this process, on a devnet, with its ledger in memory. */
export function createTestFacilitator(devnet: Devnet): CoinslotFacilitator {
  return createFacilitator({
    networks: [
      { network: devnet.network, rpcUrls: [devnet.rpcUrl], relayer: devnet.accounts.relayer },
    ],
    ledger: "sqlite::memory:",
  });
}

/** The price of one weather report, as in a route. */
export function weatherPrice({ network, token, accounts }: Devnet): PaymentOption[] {
  return [
    {
      scheme: "exact",
      network,
      payTo: accounts.seller.address,
      price: {
        amount: priceOfWeather.toString(),
        asset: token,
        extra: { name: "USDT0", version: "1", decimals: 6 },
      },
    },
  ];
}

/** Two paid routes that differ only in when they settle: `/weather` and `/stream`. */
function weatherRoutes(devnet: Devnet): PaymentRoutes {
  const accepts = weatherPrice(devnet);
  return {
    "GET /weather": { accepts, description: "Weather", mimeType: "application/json" },
    "GET /stream": { accepts, paymentFlow: "upfront" },
  };
}

/** A seller as its README shows it, and how often its handlers ran. */
export interface Seller extends Listening {
  runs(): number;
}

/** A seller of weather with everything that it rests upon. */
export interface WeatherShop {
  devnet: Devnet;
  facilitator: CoinslotFacilitator;
  seller: Seller;
  close(): Promise<void>;
}

/** Starts a devnet whose buyer holds tokens, a facilitator, and a seller of weather. */
export async function openWeatherShop(): Promise<WeatherShop> {
  const devnet = await startDevnet({ chainId: 9745 });
  await devnet.mint({ to: devnet.accounts.buyer.address, amount: 1_000_000n });
  const facilitator = createTestFacilitator(devnet);
  await facilitator.ready();
  const seller = await startSeller({ devnet, facilitator });
  return {
    devnet,
    facilitator,
    seller,
    async close() {
      await seller.close();
      await facilitator.close();
      await devnet.stop();
    },
  };
}

/** Starts a seller of weather on a free port, behind the given facilitator. */
export async function startSeller(options: {
  devnet: Devnet;
  facilitator: Facilitator;
  legacyNetworkNames?: boolean;
}): Promise<Seller> {
  const { devnet, facilitator, legacyNetworkNames = false } = options;
  let runs = 0;
  const app = express();
  const gate = paymentMiddleware(weatherRoutes(devnet), facilitator, { legacyNetworkNames });
  app.use(gate);
  app.get(["/weather", "/stream"], (_request, response) => {
    runs += 1;
    response.json({ forecast: "sun" });
  });
  await gate.ready();
  const listening = await listen(app);
  return { ...listening, runs: () => runs };
}
