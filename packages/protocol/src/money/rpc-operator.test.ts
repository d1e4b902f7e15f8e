import { expect, it } from "vitest";
import { hasWitnesses, operatorOf } from "./rpc-operator.ts";

it.each([
  ["ports", ["https://rpc.example:8545", "https://rpc.example:8546"]],
  ["ports, one of them a default", ["https://rpc.example", "http://rpc.example"]],
  ["paths", ["https://rpc.example/a", "https://rpc.example/b?key=c"]],
  ["users", ["https://a:b@rpc.example", "https://c:d@rpc.example"]],
  ["spellings", ["https://RPC.example", "https://rpc.example."]],
  ["ports of a private host", ["http://10.0.0.7:8545", "http://10.0.0.7:8546"]],
  ["ports of an IPv6 host", ["http://[2001:db8::1]:8545", "http://[2001:db8::1]:8546"]],
  ["ports of an unspecified address", ["http://0.0.0.0:8545", "http://0.0.0.0:8546"]],
])("two %s of one host are no two witnesses", (_case, urls) => {
  expect(hasWitnesses(urls)).toBe(false);
});

it.each([
  ["two names", ["https://rpc.example", "https://other.example"]],
  ["two loopback ports", ["http://127.0.0.1:8545", "http://127.0.0.1:8546"]],
  ["two ports of localhost", ["http://localhost:8545", "http://localhost:8546"]],
  ["two ports of ::1", ["http://[::1]:8545", "http://[::1]:8546"]],
  ["two ports below localhost", ["http://node.localhost:1", "http://node.localhost:2"]],
])("%s are two witnesses", (_case, urls) => {
  expect(hasWitnesses(urls)).toBe(true);
});

it("counts a loopback name once, with and without the root's dot", () => {
  expect(hasWitnesses(["http://localhost:8545", "http://localhost.:8545"])).toBe(false);
  expect(hasWitnesses(["http://localhost", "http://localhost."])).toBe(false);
});

it("takes no name that only begins like loopback for loopback", () => {
  expect(operatorOf("http://127.0.0.1.example:8545")).toBe("127.0.0.1.example");
  expect(operatorOf("http://notlocalhost:8545")).toBe("notlocalhost");
});
