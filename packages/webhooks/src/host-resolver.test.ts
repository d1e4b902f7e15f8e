import { createSocket } from "node:dgram";
import { describe, expect, it, onTestFinished } from "vitest";
import { createHostResolver } from "./public-lookup.ts";

const typeA = 1;

/**
 * A name server with one IPv4 address for every name, and no IPv6 one; a silent one never answers.
 */
async function openNameServer({ isSilent = false } = {}): Promise<string> {
  const socket = createSocket("udp4");
  socket.on("message", (query, { port, address }) => {
    if (isSilent) return;
    // The question ends with its type and class, after a name that ends with a zero.
    const end = query.indexOf(0, 12) + 5;
    const isKnown = query.readUInt16BE(end - 4) === typeA;
    const header = Buffer.from(query.subarray(0, 12));
    header.writeUInt16BE(0x8180, 2);
    header.writeUInt16BE(isKnown ? 1 : 0, 6);
    header.writeUInt16BE(0, 8);
    header.writeUInt16BE(0, 10);
    const answer = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 93, 184, 216, 34]);
    const parts = [header, query.subarray(12, end), ...(isKnown ? [answer] : [])];
    socket.send(Buffer.concat(parts), port, address);
  });
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    socket.close();
  });
  return `127.0.0.1:${socket.address().port}`;
}

describe("the addresses of a host", () => {
  it("come from the name servers, for both families", async () => {
    const servers = [await openNameServer()];
    const resolve = createHostResolver({ timeoutMs: 5_000, servers });
    expect(await resolve("shop.example")).toEqual(["93.184.216.34"]);
  });

  it("are empty after a timeout, where a name server is silent", async () => {
    const servers = [await openNameServer({ isSilent: true })];
    const resolve = createHostResolver({ timeoutMs: 50, servers });
    expect(await resolve("shop.example")).toEqual([]);
  });
});
