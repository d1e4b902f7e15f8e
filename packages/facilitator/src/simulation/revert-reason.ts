import type { Hex } from "@coinslot/protocol";

const errorSelector = "08c379a0";
const panicSelector = "4e487b71";
const maxReason = 200;

/**
 * Text of a call's revert data. The data may be cut off at its end and filled with zeros.
 *
 * @returns `undefined` when there was no data. Never more than a line of printable ASCII: any
 * author may have written the contract that returns the text.
 */
export function readRevertReason(data: Hex): string | undefined {
  const selector = data.slice(2, 10);
  const body = data.slice(10);
  if (/^0*$/.test(data.slice(2))) return undefined;
  if (selector === errorSelector) return readText(body) ?? "an empty reason";
  if (selector === panicSelector) return `panic 0x${body.slice(0, 64).replace(/^0+(?=.)/, "")}`;
  return selector.length === 8 ? `error 0x${selector}` : `data ${data}`;
}

/** The string argument of `Error(string)`: an offset, a length, the text. */
function readText(body: string): string | undefined {
  const length = Number(`0x${body.slice(64, 128) || "0"}`);
  const shown = Math.min(length, maxReason);
  const text = Buffer.from(body.slice(128, 128 + shown * 2), "hex").toString("latin1");
  const printable = text.replace(/[^\x20-\x7e]+/g, " ").trim();
  return printable === "" ? undefined : printable;
}
