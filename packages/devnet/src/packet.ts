import { type Hex, hexToBigInt, hexToNumber, slice } from "viem";

/** A LayerZero message on its way, as an endpoint announces it (PacketV1). */
export type Packet = {
  nonce: bigint;
  srcEid: number;
  /** The sending contract in 32 bytes. */
  sender: Hex;
  dstEid: number;
  /** The receiving contract in 32 bytes. */
  receiver: Hex;
  guid: Hex;
  message: Hex;
};

/**
 * Parses version (1 byte), nonce (8), source (4 + 32), destination (4 + 32), GUID (32) and message.
 */
export function parsePacket(encoded: Hex): Packet {
  return {
    nonce: hexToBigInt(slice(encoded, 1, 9)),
    srcEid: hexToNumber(slice(encoded, 9, 13)),
    sender: slice(encoded, 13, 45),
    dstEid: hexToNumber(slice(encoded, 45, 49)),
    receiver: slice(encoded, 49, 81),
    guid: slice(encoded, 81, 113),
    message: slice(encoded, 113),
  };
}
