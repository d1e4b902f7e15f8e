import { createNonceManager, type Hex, type LocalAccount } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { jsonRpc } from "viem/nonce";

/** An account with which the reference's facilitator sends several transactions at a time. */
export function createReferenceAccount(privateKey: Hex): LocalAccount {
  const nonceManager = createNonceManager({ source: jsonRpc() });
  return privateKeyToAccount(privateKey, { nonceManager });
}
