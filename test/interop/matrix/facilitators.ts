import { type Devnet, type Listening, listen } from "@coinslot/devnet";
import { createReferenceSigner } from "@coinslot/devnet/reference-facilitator";
import { facilitatorRouter } from "@coinslot/express";
import type { CoinslotFacilitator } from "@coinslot/facilitator";
import { x402Facilitator } from "@x402/core/facilitator";
import { ExactEvmScheme } from "@x402/evm/exact/facilitator";
import { ExactEvmSchemeV1 } from "@x402/evm/exact/v1/facilitator";
import express, { type Request, type RequestHandler } from "express";
import { settle, verify } from "x402/facilitator";
import { PaymentPayloadSchema, PaymentRequirementsSchema } from "x402/types";
import { createLegacyWallet } from "../../support/legacy.ts";
import { createTestFacilitator } from "../../support/seller.ts";

/** A facilitator at work: in this process, or behind a URL. */
export type RunningFacilitator = { close(): Promise<void> } & (
  | { inProcess: CoinslotFacilitator }
  | { url: string }
);

/** A facilitator of the matrix, and the versions of the protocol that it settles. */
export interface MatrixFacilitator {
  name: string;
  versions: readonly (1 | 2)[];
  isInProcess: boolean;
  start(devnet: Devnet): Promise<RunningFacilitator>;
}

const legacyName = "base-sepolia";

/** Every facilitator of the matrix. Those of the reference are hosted as its examples do it. */
export const facilitators: readonly MatrixFacilitator[] = [
  {
    name: "@coinslot/facilitator in process",
    versions: [1, 2],
    isInProcess: true,
    async start(devnet) {
      const facilitator = createTestFacilitator(devnet);
      await facilitator.ready();
      return { inProcess: facilitator, close: facilitator.close };
    },
  },
  {
    name: "@coinslot/facilitator hosted",
    versions: [1, 2],
    isInProcess: false,
    async start(devnet) {
      const facilitator = createTestFacilitator(devnet);
      await facilitator.ready();
      const listening = await listen(express().use(facilitatorRouter(facilitator)));
      const close = async () => {
        await listening.close();
        await facilitator.close();
      };
      return { url: listening.url, close };
    },
  },
  {
    name: "x402 1.2 hosted",
    versions: [1],
    isInProcess: false,
    start(devnet) {
      const wallet = createLegacyWallet(devnet, devnet.accounts.relayer);
      const read = ({ body }: Request) => {
        const payload = PaymentPayloadSchema.parse(body.paymentPayload);
        return [payload, PaymentRequirementsSchema.parse(body.paymentRequirements)] as const;
      };
      return host({
        verify: (request) => verify(wallet, ...read(request)),
        settle: (request) => settle(wallet, ...read(request)),
        getSupported: () => ({
          kinds: [{ x402Version: 1, scheme: "exact", network: legacyName }],
        }),
      });
    },
  },
  {
    name: "@x402/core 2.27 hosted",
    versions: [1, 2],
    isInProcess: false,
    start(devnet) {
      const signer = createReferenceSigner(devnet, devnet.accounts.deployer);
      // A legacy network name, where the type requires a number.
      type Name = Parameters<x402Facilitator["registerV1"]>[0];
      const facilitator = new x402Facilitator()
        .register(devnet.network, new ExactEvmScheme(signer))
        .registerV1(legacyName as unknown as Name, new ExactEvmSchemeV1(signer));
      return host({
        verify: ({ body }) => facilitator.verify(body.paymentPayload, body.paymentRequirements),
        settle: ({ body }) => facilitator.settle(body.paymentPayload, body.paymentRequirements),
        getSupported: () => facilitator.getSupported(),
      });
    },
  },
];

interface Endpoints {
  verify(request: Request): Promise<object>;
  settle(request: Request): Promise<object>;
  getSupported(): object;
}

/** Hosts a facilitator that brings no server of its own. */
function host({ verify, settle, getSupported }: Endpoints): Promise<Listening> {
  const answer =
    (ask: Endpoints["verify"]): RequestHandler =>
    async (request, response) => {
      try {
        response.json(await ask(request));
      } catch {
        response.status(500).json({ error: "Invalid request" });
      }
    };
  const app = express().use(express.json());
  app.post("/verify", answer(verify));
  app.post("/settle", answer(settle));
  app.get("/supported", (_request, response) => void response.json(getSupported()));
  return listen(app);
}
