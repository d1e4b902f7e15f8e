import {
  type ChannelConfig,
  type ChannelPlace,
  chainIdOf,
  channelContracts,
  channelDomain,
  type Hex,
  keccak256,
} from "@coinslot/protocol";
import { keccak256 as keccakOfHex, stringToHex } from "viem";
import { hexWord, uintWord } from "../../evm/word.ts";

/**
 * Digests of one escrow contract: those of viem, in a hundredth of its time. The domain separator
 * and the type hashes are the same for every channel, so they are written once.
 */
export interface ChannelDigests {
  /** The id of a channel. */
  channelIdOf: (config: ChannelConfig) => Hex;
  /** The digest that a voucher's signer signs, 32 bytes. */
  voucherDigest: (channelId: Hex, maxClaimableAmount: bigint) => Uint8Array;
}

const hashOf = (text: string) => hexWord(keccakOfHex(stringToHex(text)));

const domainTypeHash = hashOf(
  "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)",
);
const configTypeHash = hashOf(
  "ChannelConfig(address payer,address payerAuthorizer,address receiver,address receiverAuthorizer,address token,uint40 withdrawDelay,bytes32 salt)",
);
const voucherTypeHash = hashOf("Voucher(bytes32 channelId,uint128 maxClaimableAmount)");

/** Members of a `ChannelConfig` that are addresses, in the order of its type. */
const addresses = ["payer", "payerAuthorizer", "receiver", "receiverAuthorizer", "token"] as const;

/** Prepares the digests of the escrow contract of one network. */
export function createChannelDigests(place: ChannelPlace): ChannelDigests {
  const { network, contract = channelContracts.settlement } = place;
  const separator = keccakOfHex(
    `0x${domainTypeHash}${hashOf(channelDomain.name)}${hashOf(channelDomain.version)}${uintWord(chainIdOf(network))}${hexWord(contract)}`,
  );
  // Both functions are synchronous, so no other call sees a half-written buffer.
  const typed = Buffer.from(`1901${hexWord(separator)}${"0".repeat(64)}`, "hex");
  const voucher = Buffer.from(voucherTypeHash.padEnd(3 * 64, "0"), "hex");

  function digestOf(struct: Uint8Array): Uint8Array {
    typed.set(keccak256(struct), 34);
    return keccak256(typed);
  }

  /** Of frozen configs: a buyer's is read once, and comes with each of its requests. */
  const known = new WeakMap<ChannelConfig, Hex>();

  function idOf(config: ChannelConfig): Hex {
    const words = addresses.map((name) => hexWord(config[name])).join("");
    const struct = `${configTypeHash}${words}${uintWord(config.withdrawDelay)}${hexWord(config.salt)}`;
    return `0x${Buffer.from(digestOf(Buffer.from(struct, "hex"))).toString("hex")}`;
  }

  return {
    channelIdOf(config) {
      const found = known.get(config);
      if (found !== undefined) return found;
      const id = idOf(config);
      if (Object.isFrozen(config)) known.set(config, id);
      return id;
    },
    voucherDigest(channelId, maxClaimableAmount) {
      voucher.write(channelId.slice(2), 32, "hex");
      voucher.write(uintWord(maxClaimableAmount), 64, "hex");
      return digestOf(voucher);
    },
  };
}
