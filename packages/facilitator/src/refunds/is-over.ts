import { blockByNumber, parseBlockHeader, type RpcRequester } from "@coinslot/chain";
import { readBlockTime } from "../ledger/queries/common-time.ts";

/**
 * True if the form of a refund is over at an endpoint's block of a height. One that is final says
 * so for good: no later block can execute the form.
 *
 * @throws RpcError, ZodError where the endpoint does not return the block
 */
export async function isOver(
  ledger: Parameters<typeof readBlockTime>[0],
  form: { endpoint: RpcRequester; height: bigint; validBefore: bigint },
): Promise<boolean> {
  const { endpoint, height, validBefore } = form;
  if (height < 0n) return false;
  const block = parseBlockHeader(await endpoint.request(blockByNumber(height)));
  return block !== undefined && validBefore <= (await readBlockTime(ledger, block));
}
