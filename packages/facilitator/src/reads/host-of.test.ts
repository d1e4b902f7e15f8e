import { expect, it } from "vitest";
import { hostOf } from "./host-of.ts";

it.each([
  ["https://name-1234.plasma.quiknode.example/0123456789abcdef/", "quiknode.example"],
  ["https://user:word@rpc.provider.example/v2/key?token=secret#part", "provider.example"],
  ["http://127.0.0.1:8545", "127.0.0.1"],
  ["http://[::1]:8545/key", "::1"],
  ["http://localhost:8545", "localhost"],
  ["not a url with a secret", ""],
])("the host of %s is shown without its secrets", (url, host) => {
  expect(hostOf(url)).toBe(host);
});
