import { createChainClient, createRpcPool } from "@coinslot/chain";
import { type ConfiguredNetwork, hasWitnesses } from "@coinslot/hosting/environment";
import { type Address, type Asset, findKnownToken } from "@coinslot/protocol";
import { UsageError } from "./exit-code.ts";
import { printable } from "./pay/printable.ts";
import { readToken } from "./read-token.ts";

/**
 * Decimals and domain of a token, which decide the paid amount. They come from our table, else from
 * the configuration, else from all RPC endpoints of its network. The last one needs two hosts at
 * least, and one answer. One node alone is never believed: with other decimals, a high price looks
 * low.
 *
 * @throws UsageError when one node alone knows it; Error when a node does not answer, or
 * contradicts another
 */
export async function agreeOnToken(
  network: ConfiguredNetwork,
  token: Address | Asset,
): Promise<Asset> {
  const address = typeof token === "string" ? token : token.address;
  const known = findKnownToken(network.network, address);
  if (known !== undefined) return known;
  if (typeof token !== "string") return token;
  const subject = `The token ${address} on ${network.name}, which COINSLOT_TOKENS names,`;
  const [first, ...others] = await readFromAll(network, address, subject);
  if (first === undefined) throw new Error(`${subject} cannot be read`);
  if (others.some((other) => describe(other) !== describe(first))) {
    throw new Error(`${subject} is not the same for all RPC endpoints: one of them is wrong`);
  }
  if (hasWitnesses(network)) return first;
  const description = describe(first);
  const setting = isPlain(first)
    ? `If that is right, set COINSLOT_TOKENS to ${network.network}/${address}/${description}, or add an endpoint of another host.`
    : "COINSLOT_TOKENS cannot hold this name: add an endpoint of another host.";
  throw new UsageError(
    `${subject} is not a known token. Its decimals/version/name are ${printable(description)} by the RPC endpoints of one host only, and they decide the amount. ${setting}`,
  );
}

/** Returns whether the setting can hold this token: a comma begins another token. */
function isPlain({ version, name }: Asset): boolean {
  return printable(name) === name && /^[^,]+$/.test(name) && /^[\w.-]+$/.test(version);
}

/** The token in the form of `COINSLOT_TOKENS`. */
function describe({ decimals, version, name }: Asset): string {
  return `${decimals}/${version}/${name}`;
}

async function readFromAll(
  { chainId, rpcUrls }: ConfiguredNetwork,
  address: Address,
  subject: string,
): Promise<Asset[]> {
  const pool = createRpcPool({ chainId, rpcUrls });
  try {
    return await Promise.all(
      pool.endpoints.map((endpoint) => readToken(createChainClient(endpoint), address)),
    );
  } catch (cause) {
    throw new Error(`${subject} cannot be read: see coinslot doctor`, { cause });
  } finally {
    pool.close();
  }
}
