import { randomBytes } from "node:crypto";
import { text } from "node:stream/consumers";
import { type DevAccount, type Devnet, listen } from "@coinslot/devnet";
import {
  type Address,
  type Authorization,
  formatAuthorization,
  type Hex,
  transferTypedData,
} from "@coinslot/protocol";
import { pino } from "pino";
import supertest from "supertest";
import { onTestFinished } from "vitest";
import { readFacilitatorServiceConfiguration } from "../service-configuration.ts";
import { type FacilitatorService, startFacilitatorService } from "../start-service.ts";

/** A hosted facilitator, as its settings make it, on a devnet. */
export interface Hosted extends FacilitatorService {
  /** All that it has logged. */
  log(): string;
  get(path: string): Promise<supertest.Response>;
  post(path: string, body: object, headers?: Record<string, string>): Promise<supertest.Response>;
}

/** Starts one with these settings; it ends with the test. */
export async function startHosted(
  devnet: Devnet,
  env: Record<string, string | undefined> = {},
): Promise<Hosted> {
  let log = "";
  const write = (line: string) => {
    log += line;
  };
  const configuration = readFacilitatorServiceConfiguration({
    env: {
      COINSLOT_NETWORK: devnet.network,
      COINSLOT_RPC_URL: devnet.rpcUrl,
      COINSLOT_LEDGER: "sqlite::memory:",
      FACILITATOR_PRIVATE_KEY: devnet.accounts.relayer.privateKey,
      FACILITATOR_PORT: "0",
      ...env,
    },
  });
  const logger = pino({ level: "debug" }, { write });
  const service = await startFacilitatorService(configuration, { logger });
  onTestFinished(() => service.stop());
  return {
    ...service,
    log: () => log,
    // Async functions: supertest sends a request when it is awaited, and no sooner.
    get: async (path) => await supertest(service.url).get(path),
    post: async (path, body, headers = {}) =>
      await supertest(service.url).post(path).set(headers).send(body),
  };
}

/**
 * The body of `/verify` and `/settle` with a payment of the devnet's buyer, or in the name of
 * another payer.
 */
export async function signRequest(
  devnet: Devnet,
  change: { payTo?: Address; asset?: Address; signer?: DevAccount; from?: Address } = {},
) {
  const { accounts, network, token } = devnet;
  const { payTo = accounts.seller.address, asset = token, signer = accounts.buyer } = change;
  const domain = { name: "USDT0", version: "1" };
  const nonce: Hex = `0x${randomBytes(32).toString("hex")}`;
  const authorization: Authorization = {
    from: change.from ?? signer.address,
    to: payTo,
    value: 1_000n,
    validAfter: 0n,
    validBefore: BigInt(Math.floor(Date.now() / 1_000) + 300),
    nonce,
  };
  const typed = transferTypedData({ authorization, network, asset, domain });
  const signature = await signer.signTypedData(typed);
  const paymentRequirements = {
    scheme: "exact",
    network,
    amount: "1000",
    asset,
    payTo,
    maxTimeoutSeconds: 300,
    extra: domain,
  };
  const payload = { signature, authorization: formatAuthorization(authorization) };
  const paymentPayload = { x402Version: 2, payload, accepted: paymentRequirements };
  return { x402Version: 2, paymentPayload, paymentRequirements, signature };
}

/** A server that records the events it receives. */
export async function openReceiver() {
  const received: { headers: Record<string, unknown>; body: string }[] = [];
  const { url, port, close } = await listen(async (request, response) => {
    received.push({ headers: request.headers, body: await text(request) });
    response.writeHead(204).end();
  });
  onTestFinished(close);
  const types = () => received.map(({ body }): string => JSON.parse(body).type);
  return { url, port, received, types };
}
