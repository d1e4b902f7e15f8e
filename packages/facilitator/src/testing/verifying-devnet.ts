import { createRpcPool, type HttpPost, httpPost, type RpcPool } from "@coinslot/chain";
import { type Devnet, startDevnet } from "@coinslot/devnet";
import type { Address } from "@coinslot/protocol";
import { silentLogger } from "../logger.ts";
import { createSimulator, type Simulator, type SimulatorOptions } from "../simulation/simulator.ts";
import type { SignatureLimits } from "../verify/signature-budget.ts";
import { createVerifier, type Verifier } from "../verify/verifier.ts";
import { type SignedTestPayment, signPayment, type TestPayment } from "./payments.ts";

/** A chain, and what verifies payments on it. */
export interface VerifyingDevnet {
  devnet: Devnet;
  pool: RpcPool;
  simulator: Simulator;
  verifier: Verifier;
  /** A valid payment by the buyer to the seller, with the given change. */
  sign(change?: Partial<TestPayment>): Promise<SignedTestPayment>;
  /** Bodies of the HTTP requests that the chain was sent through the pool, the latest last. */
  requests: string[];
  stop(): Promise<void>;
}

export const startingBalance = 1_000_000n;

/** Starts a devnet whose buyer holds one token, and a verifier for it. */
export async function startVerifyingDevnet(): Promise<VerifyingDevnet> {
  const devnet = await startDevnet();
  const { buyer, seller } = devnet.accounts;
  await devnet.mint({ to: buyer.address, amount: startingBalance });
  const requests: string[] = [];
  const pool = createPool(devnet, (request) => {
    requests.push(request.body);
    return httpPost(request);
  });
  const simulator = createSimulator({ rpc: pool, now: Date.now });
  const verifier = createTestVerifier({ devnet, pool, simulator });
  return {
    devnet,
    pool,
    simulator,
    verifier,
    sign: (change) =>
      signPayment({
        network: devnet.network,
        asset: devnet.token,
        signer: buyer,
        payTo: seller.address,
        ...change,
      }),
    requests,
    stop: async () => {
      pool.close();
      await devnet.stop();
    },
  };
}

/** A pool with requests through `post`, and a short timeout. */
export function createPool(devnet: Pick<Devnet, "chainId" | "rpcUrl">, post: HttpPost): RpcPool {
  const { chainId, rpcUrl } = devnet;
  return createRpcPool({ chainId, rpcUrls: [rpcUrl], post, patienceMs: 100 });
}

/** A verifier for one devnet. */
export function createTestVerifier(options: {
  devnet: Devnet;
  pool: RpcPool;
  simulator?: Simulator;
  simulatorOptions?: Partial<SimulatorOptions>;
  assets?: readonly Address[];
  now?: () => number;
  limits?: SignatureLimits;
}): Verifier {
  const { devnet, pool, assets, now = Date.now, limits } = options;
  const simulator =
    options.simulator ?? createSimulator({ rpc: pool, now: Date.now, ...options.simulatorOptions });
  const network = { rpc: pool, simulator, assets };
  return createVerifier({
    networks: new Map([[devnet.network, network]]),
    now,
    limits,
    logger: silentLogger,
  });
}
