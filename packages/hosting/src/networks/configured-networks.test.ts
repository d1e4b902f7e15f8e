import { expect, it } from "vitest";
import { hasWitnesses } from "./configured-networks.ts";

it("counts the RPC endpoints of one host as one witness, whatever their ports", () => {
  const rpcUrls = ["https://rpc.example:8545", "https://rpc.example:8546/key"];
  expect(hasWitnesses({ rpcUrls })).toBe(false);
  expect(hasWitnesses({ rpcUrls: [...rpcUrls, "https://other.example"] })).toBe(true);
});

it("counts no WebSocket endpoint as a witness, since no request goes to it", () => {
  expect(hasWitnesses({ rpcUrls: ["https://rpc.example", "wss://other.example"] })).toBe(false);
});
