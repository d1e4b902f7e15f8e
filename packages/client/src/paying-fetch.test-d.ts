import type { LocalAccount } from "viem";
import { expectTypeOf } from "vitest";
import type { PayingFetch, PayingFetchOptions } from "./index.ts";

// A paying fetch is accepted wherever a fetch is.
expectTypeOf<PayingFetch>().toExtend<typeof fetch>();

declare const account: LocalAccount;
const rpcUrls = { "eip155:9745": "https://rpc.example" } as const;

// One way to sign, and only one.
expectTypeOf({ account, rpcUrls }).toExtend<PayingFetchOptions>();
expectTypeOf({ seedPhrase: "", accountIndex: 1, rpcUrls }).toExtend<PayingFetchOptions>();
expectTypeOf({ privateKey: "0x00" as const, rpcUrls }).toExtend<PayingFetchOptions>();
expectTypeOf({ rpcUrls }).not.toExtend<PayingFetchOptions>();
expectTypeOf({ account, seedPhrase: "", rpcUrls }).not.toExtend<PayingFetchOptions>();
