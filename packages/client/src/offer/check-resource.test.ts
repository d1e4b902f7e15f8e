import type { Offer } from "@coinslot/protocol";
import { describe, expect, it } from "vitest";
import { PaymentError } from "../payment-error.ts";
import { requirements } from "../testing/seller.ts";
import { waysOf } from "../wires/x402/x402.ts";
import { checkResource } from "./check-resource.ts";

/**
 * The message with which an offer for a resource is refused at a URL, or `undefined` where it is
 * paid.
 */
function refusalAt(url: string, resource: string | undefined, version: 1 | 2): string | undefined {
  const accepted = requirements();
  const offered =
    version === 2
      ? ({ x402Version: 2, requirements: accepted, accepted: { ...accepted } } as const)
      : ({
          x402Version: 1,
          requirements: accepted,
          networkName: accepted.network,
          resourceUrl: resource ?? "",
        } as const);
  const named = version === 2 && resource !== undefined ? { resource: { url: resource } } : {};
  const offer: Offer = { x402Version: version, error: "", accepts: [offered], ...named };
  try {
    for (const way of waysOf(offer)) checkResource(way, new URL(url));
    return undefined;
  } catch (error) {
    if (!(error instanceof PaymentError)) throw error;
    expect(error.code).toBe("resource_mismatch");
    return error.message;
  }
}

const asked = "https://shop.example:8443/api/weather?city=hamburg";

describe.each([1, 2] as const)("an offer of a public host in version %i", (version) => {
  it.each([
    ["no resource", undefined],
    ["an empty resource", ""],
    ["the URL that was asked", asked],
    ["a relative resource", "/api/weather"],
    [
      "the same host without its port, as `Host $host` gives it",
      "https://shop.example/api/weather",
    ],
    ["the same host over plain HTTP, behind a proxy that ends TLS", "http://shop.example:8443/x"],
    ["the same host in capitals and fully qualified", "https://SHOP.example.:1/api/weather"],
    ["a path that the proxy has cut", "http://shop.example/weather"],
    ["a loopback upstream, as a plain `proxy_pass` gives it", "http://127.0.0.1:4021/weather"],
    ["a loopback upstream by name", "http://localhost:4021/weather"],
    ["a loopback upstream of IPv6", "http://[::1]:4021/weather"],
    ["a loopback upstream of IPv4 in IPv6", "http://[::ffff:127.0.0.1]/weather"],
    ["a private upstream", "http://10.1.2.3:4021/weather"],
    ["a private upstream of IPv6", "http://[fd00::1]:4021/weather"],
    ["an upstream block by its name", "http://backend/weather"],
    ["a container by its name", "http://app:4021/weather"],
    ["a cluster's service by its name", "http://shop.default.svc.cluster.local/weather"],
  ])("is paid for with %s", (_case, resource) => {
    expect(refusalAt(asked, resource, version)).toBeUndefined();
  });
});

describe.each([1, 2] as const)("an offer with another resource in version %i", (version) => {
  it.each([
    ["another public host", "https://other.example/weather", "other.example"],
    ["another public host and the same path", "https://other.example/api/weather", "other.example"],
    ["a host that ends as the one that was asked", "https://notshop.example/x", "notshop.example"],
    ["a host below the one that was asked", "https://www.shop.example/x", "www.shop.example"],
    ["a public address", "http://203.0.113.7:4021/weather", "203.0.113.7:4021"],
    ["a public address in another form", "http://3405803783/weather", "203.0.113.7"],
    ["a public address of IPv6", "http://[2001:db8::1]/weather", "[2001:db8::1]"],
    ["a public address of IPv4 in IPv6", "http://[::ffff:203.0.113.7]/", "[::ffff:cb00:7107]"],
    ["a host behind a user's name", "https://shop.example@other.example/x", "other.example"],
    [
      "a host that begins as a private one",
      "http://10.0.0.1.other.example/",
      "10.0.0.1.other.example",
    ],
    ["another host without a scheme", "//other.example/weather", "other.example"],
  ])("is refused for %s", (_case, resource, host) => {
    const message = refusalAt(asked, resource, version) ?? "";
    expect(message).toContain(`shop.example:8443 offers a resource of ${host};`);
    expect(message).toContain("sets publicUrl (COINSLOT_PUBLIC_URL) to https://shop.example:8443");
    expect(message).toContain("nothing was signed");
    expect(message).not.toContain("weather");
  });

  it.each(["urn:shop:weather", "mcp://tool/weather", "javascript:1", "http://"])(
    "is refused for a resource that is not an HTTP URL: %s",
    (resource) => {
      expect(refusalAt(asked, resource, version)).toContain("not an HTTP URL");
    },
  );

  it("is refused for a public host where a private one was asked", () => {
    const message = refusalAt("http://127.0.0.1:8080/x", "https://other.example/x", version);
    expect(message).toContain("127.0.0.1:8080 offers a resource of other.example;");
  });
});
