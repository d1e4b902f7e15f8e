import type { RpcEndpointHandle } from "@coinslot/chain";
import { type Address, type Hex, toLowerHex } from "@coinslot/protocol";
import * as z from "zod";
import type { ReceiptLog } from "../evm/transaction-receipt.ts";

const hex = z.templateLiteral(["0x", z.string().regex(/^[0-9a-fA-F]*$/)]).transform(toLowerHex);
const logsSchema = z.array(
  z.object({ address: hex, topics: z.array(hex), data: hex, transactionHash: hex }),
);

/**
 * A token's logs of a transaction in a block. A node may keep them where it has no receipt of an
 * old transaction: it has pruned its index by hash.
 *
 * @throws RpcError, ZodError where it returns an error, or other than logs
 */
export async function readLogsOf(
  endpoint: RpcEndpointHandle,
  { asset, hash, blockNumber }: { asset: Address; hash: Hex; blockNumber: number },
): Promise<ReceiptLog[]> {
  const block = `0x${blockNumber.toString(16)}`;
  const filter = { address: asset, fromBlock: block, toBlock: block };
  const answer = await endpoint.request({ method: "eth_getLogs", params: [filter] });
  return logsSchema.parse(answer).filter(({ transactionHash }) => transactionHash === hash);
}
