import { type Address, isNetwork, isWellFormedAddress, type Network } from "@coinslot/protocol";
import { InvalidArgumentError } from "commander";

/** A network of an option, by its CAIP-2 name. @throws InvalidArgumentError */
export function readNetwork(text: string): Network {
  if (!isNetwork(text)) throw new InvalidArgumentError("expected a network such as eip155:9745");
  return text;
}

/** @throws InvalidArgumentError */
export function readAddress(text: string): Address {
  if (!isWellFormedAddress(text)) throw new InvalidArgumentError("expected an address");
  return text;
}

/** Makes the reader of a page's size. @throws InvalidArgumentError the reader, above `most` */
export function readLimit(most: number): (text: string) => number {
  return (text) => {
    const limit = Number(text);
    if (Number.isInteger(limit) && limit >= 1 && limit <= most) return limit;
    throw new InvalidArgumentError(`expected a number from 1 to ${most}`);
  };
}

/** A port to listen on; 0 is any free one. @throws InvalidArgumentError */
export function readPort(text: string): number {
  const port = /^[0-9]{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (port <= 65_535) return port;
  throw new InvalidArgumentError("expected a port from 0 to 65535");
}
