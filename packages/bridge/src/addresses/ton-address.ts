import { bytesToHex, type Hex } from "viem";

const bounceable = 0x11;
const nonBounceable = 0x51;
const testnetOnly = 0x80;

/**
 * The 32 bytes of a TON address in either of its forms (TEP-2). Raw is `<workchain>:<64 hex
 * digits>`. User-friendly is 48 characters of base64 with a tag, the workchain and a checksum.
 *
 * The message has room for the 32 bytes alone, and tokens arrive in the basic workchain. An address
 * in another workchain is refused, and so is every form that would arrive elsewhere than it says.
 */
export function parseTonAddress(text: string): Hex | Error {
  const raw = /^(-?\d{1,10}):([0-9a-fA-F]{64})$/.exec(text);
  if (raw?.[1] !== undefined && raw[2] !== undefined) {
    return inBasicWorkchain(Number(raw[1]), `0x${raw[2].toLowerCase()}`);
  }
  // Both alphabets of base64 are in use, but not in one address.
  if (!/^(?:[A-Za-z0-9+/]{48}|[A-Za-z0-9_-]{48})$/.test(text)) {
    return new Error("is neither <workchain>:<64 hex digits> nor 48 characters of base64");
  }
  const bytes = new Uint8Array(Buffer.from(text, "base64url"));
  const checksum = ((bytes[34] ?? 0) << 8) | (bytes[35] ?? 0);
  if (crc16(bytes.subarray(0, 34)) !== checksum) return new Error("does not fit its checksum");
  const tag = bytes[0] ?? 0;
  if ((tag & testnetOnly) !== 0) return new Error("is for the test network only");
  if (tag !== bounceable && tag !== nonBounceable) return new Error("has an unknown tag");
  const workchain = ((bytes[1] ?? 0) << 24) >> 24;
  return inBasicWorkchain(workchain, bytesToHex(bytes.subarray(2, 34)));
}

function inBasicWorkchain(workchain: number, hash: Hex): Hex | Error {
  return workchain === 0 ? hash : new Error(`is in workchain ${workchain}, not in workchain 0`);
}

/** CRC-16/XMODEM: polynomial 0x1021, beginning at zero. */
function crc16(bytes: Uint8Array): number {
  let crc = 0;
  for (const byte of bytes) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) {
      crc = ((crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021) & 0xffff;
    }
  }
  return crc;
}
