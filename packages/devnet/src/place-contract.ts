import type { Address, Hex } from "viem";
import type { DevnetClient } from "./devnet-client.ts";
import type { Faucet } from "./faucet.ts";

/**
 * Puts a contract at an address of choice, as if its constructor had run there. First the creation
 * code is placed as if it were the contract, and called. Its writes stay in the storage of that
 * address. Its return value is the code that is placed there at last.
 *
 * Changes made this way belong to no block. Mine one afterwards, or a reorganisation takes them
 * away.
 *
 * @param creationCode bytecode with the encoded constructor arguments
 */
export async function placeContract(
  { client, send }: { client: DevnetClient; send: Faucet },
  { address, creationCode }: { address: Address; creationCode: Hex },
): Promise<void> {
  await client.setCode({ address, bytecode: creationCode });
  const { data: runtimeCode } = await client.call({ to: address });
  if (runtimeCode === undefined)
    throw new Error(`The constructor for ${address} returned no code.`);
  await send({ to: address });
  await client.setCode({ address, bytecode: runtimeCode });
}
