import { type Devnet, type Listening, listen } from "@coinslot/devnet";
import { createReferenceFacilitator } from "@coinslot/devnet/reference-facilitator";
import { paymentMiddleware } from "@coinslot/express";
import { supportedSchema } from "@coinslot/protocol";
import type { FacilitatorClient } from "@x402/core/server";
import { ExactEvmScheme } from "@x402/evm/exact/server";
import { paymentMiddleware as referenceMiddleware, x402ResourceServer } from "@x402/express";
import express, { type Express, type RequestHandler } from "express";
import { evm, Mppx } from "mppx/server";
import { nonceManager } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { createTestFacilitator } from "./seller.ts";
import { usdc, usdcOffer } from "./usdc-devnet.ts";

/** Paid routes of every seller: two that work, and one whose handler fails. */
const paths = ["/weather", "/news", "/broken"] as const;

/** A seller that `coinslot verify` checks in tests and in the documentation. */
export interface VerifiedSeller {
  /** As the documentation names it. */
  name: string;
  start(devnet: Devnet): Promise<Listening>;
}

/** The settings with which the command reads this chain, and finds money there. */
export function verifiedEnvironment({ network, rpcUrl, accounts }: Devnet): Record<string, string> {
  return {
    COINSLOT_NETWORK: network,
    COINSLOT_RPC_URL: rpcUrl,
    WALLET_PRIVATE_KEY: accounts.buyer.privateKey,
  };
}

/** Ours, the reference's, and mppx's. */
export const verifiedSellers: readonly VerifiedSeller[] = [
  {
    name: "@coinslot/express",
    async start(devnet) {
      const facilitator = createTestFacilitator(devnet);
      const accepts = usdcOffer(devnet);
      const routes = Object.fromEntries(paths.map((path) => [`GET ${path}`, { accepts }]));
      const gate = paymentMiddleware(routes, facilitator, { legacyNetworkNames: true });
      await gate.ready();
      const seller = await listen(withHandlers(express().use(gate)));
      const close = async () => {
        await seller.close();
        await facilitator.close();
      };
      return { ...seller, close };
    },
  },
  {
    name: "@x402/express",
    start(devnet) {
      const server = new x402ResourceServer(referenceFacilitator(devnet, 0));
      server.register(devnet.network, new ExactEvmScheme());
      const accepts = usdcOffer(devnet);
      const routes = Object.fromEntries(paths.map((path) => [`GET ${path}`, { accepts }]));
      return listen(withHandlers(express().use(referenceMiddleware(routes, server))));
    },
  },
  {
    name: "mppx/server",
    start(devnet) {
      // Of another package than its type, which it takes by its form.
      type Facilitator = Exclude<
        NonNullable<NonNullable<Parameters<typeof evm.charge>[0]["x402"]>["facilitator"]>,
        string
      >;
      const facilitator = referenceFacilitator(devnet, 1) as unknown as Facilitator;
      const charge = evm.charge({
        chainId: devnet.chainId,
        currency: usdc,
        decimals: 6,
        authorization: { name: "USDC", version: "2" },
        recipient: devnet.accounts.seller.address,
        x402: { facilitator },
      });
      const payment = Mppx.create({
        methods: [charge],
        secretKey: "a secret of this test that has 32 bytes",
      });
      const gate: RequestHandler = async (request, response, next) => {
        const listener = Mppx.toNodeListener(payment.charge({ amount: "0.001" }));
        const { status } = await listener(request, response);
        if (status !== 402) next();
      };
      return listen(withHandlers(express().use([...paths], gate)));
    },
  },
];

/** The reference's facilitator, with a relayer that sends several transactions at a time. */
function referenceFacilitator(devnet: Devnet, index: number): FacilitatorClient {
  const relayer = devnet.accounts.others[index];
  if (relayer === undefined) throw new Error("The devnet has too few accounts");
  const account = privateKeyToAccount(relayer.privateKey, { nonceManager });
  const facilitator = createReferenceFacilitator(devnet, account);
  return {
    verify: (payload, requirements) => facilitator.verify(payload, requirements),
    settle: (payload, requirements) => facilitator.settle(payload, requirements),
    getSupported: async () => supportedSchema.parse(facilitator.getSupported()),
  };
}

function withHandlers(app: Express): Express {
  app.get(["/weather", "/news"], (_request, response) => void response.json({ forecast: "sun" }));
  app.get("/broken", (_request, response) => void response.status(500).send("it broke"));
  return app;
}
