import { type Authorization, type Hex, keccak256 } from "@coinslot/protocol";
import { hexWord, uintWord } from "../../evm/word.ts";

const transferTypeHash = keccak256(
  Buffer.from(
    "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)",
  ),
);
const structWords = 7;

/**
 * The EIP-712 digest that the payer of an EIP-3009 transfer signs. It is the result of viem's
 * `hashTypedData` in an eighth of the time. The type and the domain need not be hashed again.
 */
export function hashTransfer(domainSeparator: Hex, authorization: Authorization): Uint8Array {
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  const words =
    hexWord(from) +
    hexWord(to) +
    uintWord(value) +
    uintWord(validAfter) +
    uintWord(validBefore) +
    hexWord(nonce);
  const struct = Buffer.allocUnsafe(structWords * 32);
  struct.set(transferTypeHash);
  struct.write(words, 32, "hex");
  const message = Buffer.allocUnsafe(2 + 2 * 32);
  message.writeUInt16BE(0x1901);
  message.write(hexWord(domainSeparator), 2, "hex");
  message.set(keccak256(struct), 2 + 32);
  return keccak256(message);
}
