import type { Devnet } from "@coinslot/devnet";
import type { Hex } from "@coinslot/protocol";
import { keccak256, toHex } from "viem";
import * as z from "zod";
import type { NodeCall } from "./node-proxy.ts";

const blockSchema = z.looseObject({ number: z.string(), timestamp: z.string() });
const atBlockSchema = z.tuple([z.unknown(), z.object({ blockHash: z.string() })]);

/** A made-up head: blocks above the chain's, and seconds after its last one. */
export interface MadeUpHead {
  lead: bigint;
  seconds: bigint;
}

/** The answer of a node that makes up blocks above the chain, without events. */
export async function makeUpBlocks(
  { client }: Pick<Devnet, "client">,
  { method, params }: NodeCall,
  { lead, seconds }: MadeUpHead,
): Promise<{ result: unknown }> {
  const request = (parts: readonly unknown[]) =>
    client.request({ method, params: parts } as never) as Promise<unknown>;
  if (method === "eth_getLogs") return { result: [] };
  if (method === "eth_blockNumber") {
    return { result: toHex(BigInt(z.string().parse(await request([]))) + lead) };
  }
  if (method === "eth_getBlockByNumber") {
    const [place] = params;
    const asked = typeof place === "string" && place.startsWith("0x") ? BigInt(place) : undefined;
    const latest = blockSchema.parse(await request(["latest", false]));
    const real = BigInt(latest.number);
    if (asked !== undefined && asked <= real) return { result: await request(params) };
    const number = toHex(asked ?? real + lead);
    const hash: Hex = keccak256(toHex(`${number}/${lead}`));
    const timestamp = toHex(BigInt(latest.timestamp) + seconds);
    return { result: { ...latest, number, hash, parentHash: keccak256(hash), timestamp } };
  }
  const at = atBlockSchema.safeParse(params).data;
  if (method === "eth_call" && at) return { result: await request([params[0], "latest"]) };
  return { result: await request(params) };
}
