import * as z from "zod";
import { parseEvmAddress } from "../addresses/evm-address.ts";

/**
 * The networks of contracts. A token travels within one of them: a contract knows only contracts of
 * its own network as its peers.
 *
 * - `oft`: USDT0.
 * - `legacyMesh`: pools of the USDT that was there before USDT0, joined to it on Ethereum and
 *   Arbitrum.
 * - `xautOft`: XAUT0, gold.
 *
 * In the order in which they are tried.
 */
export const contractKinds = ["oft", "legacyMesh", "xautOft"] as const;
export type ContractKind = (typeof contractKinds)[number];

const address = z.string().transform((text, context) => {
  const parsed = parseEvmAddress(text);
  if (!(parsed instanceof Error)) return parsed;
  context.addIssue({ code: "custom", message: `the address ${parsed.message}` });
  return z.NEVER;
});

const named = {
  /** The chain's name in requests. */
  key: z.string().min(1),
  name: z.string().min(1),
  /** LayerZero's endpoint id. */
  eid: z.int().positive(),
  /** Symbol of the native coin, which pays for gas. */
  nativeToken: z.string().min(1),
};

/** A chain from which tokens can be sent, and to which. */
const evmBridgeChainSchema = z.strictObject({
  ...named,
  type: z.literal("evm"),
  chainId: z.int().positive(),
  contracts: z.strictObject({
    oft: address.optional(),
    legacyMesh: address.optional(),
    xautOft: address.optional(),
  }),
  /** The token that arrives through `contracts.oft`, where public tables agree on it. */
  token: address.optional(),
});

/** A chain outside the EVM, to which tokens can be sent. */
const foreignBridgeChainSchema = z.strictObject({
  ...named,
  type: z.enum(["svm", "ton", "tvm"]),
  /** The networks of contracts that have a member there. */
  reachedBy: z.array(z.enum(contractKinds)),
});

/** One row of the chain table. */
export const bridgeChainSchema = z.discriminatedUnion("type", [
  evmBridgeChainSchema,
  foreignBridgeChainSchema,
]);

export type BridgeChain = z.infer<typeof bridgeChainSchema>;
export type EvmBridgeChain = z.infer<typeof evmBridgeChainSchema>;

/** Returns whether a network of contracts has a member on the chain. */
export function isReachedBy(chain: BridgeChain, kind: ContractKind): boolean {
  return chain.type === "evm"
    ? chain.contracts[kind] !== undefined
    : chain.reachedBy.includes(kind);
}
