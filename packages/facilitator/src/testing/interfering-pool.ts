import type { RpcPool } from "@coinslot/chain";
import type { Devnet } from "@coinslot/devnet";
import * as z from "zod";
import { createPool } from "./verifying-devnet.ts";

const callSchema = z.looseObject({
  to: z.string().optional(),
  data: z.string(),
  gas: z.string().optional(),
});

/** The call object of an `eth_call`. */
export type EthCall = z.infer<typeof callSchema>;

/** The node's answer in place of its chain's: an error, or a result. */
export type Interference = { code: number; message: string } | string;

const requestSchema = z.looseObject({
  id: z.number(),
  method: z.string(),
  params: z.array(z.unknown()),
});
type JsonRpcRequest = z.infer<typeof requestSchema>;

export interface InterferingPool {
  pool: RpcPool;
  /** Number of `eth_call`s. */
  calls(): number;
  /** Number of them that `interfere` answered. */
  answered(): number;
}

/** A pool to a devnet whose `eth_call`s go through `interfere`, which may change or answer them. */
export function createInterferingPool(
  devnet: Pick<Devnet, "chainId" | "rpcUrl">,
  interfere: (call: EthCall) => Interference | undefined,
): InterferingPool {
  let calls = 0;
  let answered = 0;

  async function answer(url: string, request: JsonRpcRequest): Promise<unknown> {
    const { id, method, params } = request;
    const forwarded = { ...request };
    if (method === "eth_call") {
      calls += 1;
      const call = callSchema.parse(params[0]);
      const said = interfere(call);
      if (said !== undefined) {
        answered += 1;
        return {
          jsonrpc: "2.0",
          id,
          ...(typeof said === "string" ? { result: said } : { error: said }),
        };
      }
      forwarded.params = [call, ...params.slice(1)];
    }
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(forwarded),
    });
    return response.json();
  }

  const pool = createPool(devnet, async ({ href, body }) => {
    const asked: unknown = JSON.parse(body);
    const requests = Array.isArray(asked) ? asked : [asked];
    const answers = await Promise.all(
      requests.map((request) => answer(href, requestSchema.parse(request))),
    );
    const text = JSON.stringify(Array.isArray(asked) ? answers : answers[0]);
    return { status: 200, headers: {}, text };
  });
  return { pool, calls: () => calls, answered: () => answered };
}
