import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createRedactor, parseRpcUrls, shortenBytes } from "./rpc-url.ts";

const key = fc.stringMatching(/^[A-Za-z0-9_-]{8,40}$/);

describe("createRedactor", () => {
  it("leaves no URL and no key in any text of a node", () => {
    fc.assert(
      fc.property(key, key, key, fc.string(), (pathKey, queryKey, password, noise) => {
        const url = `https://user:${password}@rpc.provider.example/v2/${pathKey}?apikey=${queryKey}`;
        const redact = createRedactor(parseRpcUrls([url]));
        const echoes = [url, `at /v2/${pathKey}`, `${noise}${queryKey}`, `auth ${password}`];

        const text = JSON.stringify(redact({ message: echoes, [noise]: { deep: echoes } }));

        for (const secret of [pathKey, queryKey, password, "rpc.provider.example", "://"])
          expect(text.replaceAll(JSON.stringify(noise).slice(1, -1), "")).not.toContain(secret);
      }),
    );
  });

  it("comes with shortenBytes, which cuts byte strings longer than a hash", () => {
    const hash = `0x${"ab".repeat(32)}`;
    const raw = `0x02f8${"C0".repeat(200)}`;
    expect(shortenBytes(`refused ${raw}: ${hash} is known`)).toBe(
      `refused 0x02f8C0C0…: ${hash} is known`,
    );
  });

  it("keeps revert data as it is", () => {
    const redact = createRedactor(
      parseRpcUrls(["https://rpc.provider.example/v2/0123456789abcdef"]),
    );
    expect(redact("0x08c379a0")).toBe("0x08c379a0");
    expect(redact({ code: 3, data: null })).toEqual({ code: 3, data: null });
  });
});
