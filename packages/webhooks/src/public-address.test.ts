import { describe, expect, it } from "vitest";
import { isPublicAddress } from "./public-address.ts";
import { createPublicLookup } from "./public-lookup.ts";
import { readCallbackUrl } from "./read-callback-url.ts";

const publicAddresses = [
  "1.1.1.1",
  "93.184.216.34",
  "172.15.255.255",
  "172.32.0.1",
  "169.253.255.255",
  "2606:4700:4700::1111",
  "2a00:1450:4001:81b::200e",
];

const otherAddresses = [
  ["loopback", "127.0.0.1"],
  ["all of loopback", "127.255.255.254"],
  ["this host", "0.0.0.0"],
  ["this network", "0.1.2.3"],
  ["private, 10/8", "10.0.0.1"],
  ["private, 172.16/12", "172.16.0.1"],
  ["private, 172.31", "172.31.255.255"],
  ["private, 192.168/16", "192.168.1.1"],
  ["shared between carriers", "100.64.0.1"],
  ["metadata of Alibaba", "100.100.100.200"],
  ["link-local", "169.254.1.1"],
  ["metadata of AWS, GCP and Azure", "169.254.169.254"],
  ["metadata of ECS tasks", "169.254.170.2"],
  ["metadata of Oracle", "192.0.0.192"],
  ["Azure's host", "168.63.129.16"],
  ["documentation", "203.0.113.5"],
  ["benchmarks", "198.18.0.1"],
  ["multicast", "224.0.0.1"],
  ["reserved", "240.0.0.1"],
  ["broadcast", "255.255.255.255"],
  ["IPv6 loopback", "::1"],
  ["IPv6 unspecified", "::"],
  ["IPv4-mapped loopback", "::ffff:127.0.0.1"],
  ["IPv4-mapped, in hex", "::ffff:7f00:1"],
  ["IPv4-mapped metadata", "::ffff:169.254.169.254"],
  ["IPv4-mapped and public", "::ffff:1.1.1.1"],
  ["IPv4-compatible", "::7f00:1"],
  ["NAT64 of loopback", "64:ff9b::7f00:1"],
  ["NAT64 of metadata", "64:ff9b::169.254.169.254"],
  ["NAT64 of a network's own prefix", "64:ff9b:1::1"],
  ["6to4 of loopback", "2002:7f00:1::"],
  ["Teredo", "2001:0:53aa:64c::1"],
  ["unique local", "fd00::1"],
  ["metadata of AWS over IPv6", "fd00:ec2::254"],
  ["link-local IPv6", "fe80::1"],
  ["link-local IPv6 with a zone", "fe80::1%eth0"],
  ["site-local IPv6", "fec0::1"],
  ["multicast IPv6", "ff02::1"],
  ["documentation IPv6", "2001:db8::1"],
  ["discarded IPv6", "100::1"],
  ["octal", "0177.0.0.1"],
  ["shortened", "127.1"],
  ["decimal", "2130706433"],
  ["hexadecimal", "0x7f000001"],
  ["no address", "localhost"],
  ["nothing", ""],
] as const;

describe("an address", () => {
  it.each(publicAddresses)("is public: %s", (address) => {
    expect(isPublicAddress(address)).toBe(true);
  });
});

describe("a special-purpose or malformed address", () => {
  it.each(otherAddresses)("is not public, %s: %s", (_case, address) => {
    expect(isPublicAddress(address)).toBe(false);
  });
});

describe("a callback URL", () => {
  it.each([
    "https://shop.example/events",
    "https://shop.example:8443/events?order=7",
    "https://1.1.1.1/",
    "https://[2606:4700:4700::1111]/",
  ])("may be %s", (header) => {
    expect(readCallbackUrl(header, { allowPrivate: false })?.href).toBe(header);
  });

  it.each([
    ["is not there", undefined],
    ["is empty", ""],
    ["is no URL", "shop.example"],
    ["is relative", "/events"],
    ["is not encrypted", "http://shop.example/"],
    ["is no web address", "file:///etc/passwd"],
    ["is no web address either", "gopher://shop.example/"],
    ["carries credentials", "https://user:secret@shop.example/"],
    ["came twice", "https://shop.example/, https://other.example/"],
    ["has no end", `https://shop.example/${"x".repeat(2_048)}`],
    ["loopback", "https://127.0.0.1/"],
    ["octal", "https://0177.0.0.1/"],
    ["octal with many zeros", "https://0000177.0.0.01/"],
    ["hexadecimal", "https://0x7f.0.0.1/"],
    ["decimal", "https://2130706433/"],
    ["shortened", "https://127.1/"],
    ["full-width digits", "https://１２７.0.0.1/"],
    ["percent-encoded", "https://%31%32%37.0.0.1/"],
    ["a dot at the end", "https://127.0.0.1./"],
    ["zero", "https://0/"],
    ["metadata", "https://169.254.169.254/latest/meta-data/"],
    ["IPv6 loopback", "https://[::1]/"],
    ["IPv4-mapped", "https://[::ffff:10.0.0.1]/"],
    ["NAT64", "https://[64:ff9b::10.0.0.1]/"],
  ])("is ignored that %s", (_case, header) => {
    expect(readCallbackUrl(header, { allowPrivate: false })).toBeUndefined();
  });

  it("may be any web URL where private addresses are allowed", () => {
    for (const header of ["http://127.0.0.1:9/x", "https://10.0.0.1/", "http://receiver/"]) {
      expect(readCallbackUrl(header, { allowPrivate: true })?.href).toBe(header);
    }
    expect(readCallbackUrl("ftp://receiver/", { allowPrivate: true })).toBeUndefined();
  });
});

describe("the lookup of a socket", () => {
  function lookUp(addresses: readonly string[], all: boolean) {
    const lookup = createPublicLookup(async () => addresses);
    return new Promise((resolve) => {
      lookup("shop.example", { all }, (error, found, family) =>
        resolve(error ? error.name : all ? found : { address: found, family }),
      );
    });
  }

  it("returns public addresses in the requested form", async () => {
    const addresses = ["2606:4700:4700::1111", "1.1.1.1"];
    expect(await lookUp(addresses, true)).toEqual([
      { address: "2606:4700:4700::1111", family: 6 },
      { address: "1.1.1.1", family: 4 },
    ]);
    expect(await lookUp(addresses, false)).toEqual({ address: "2606:4700:4700::1111", family: 6 });
  });

  it.each([[[]], [["10.0.0.1"]], [["1.1.1.1", "10.0.0.1"]], [["::ffff:10.0.0.1"]]])(
    "returns none of %j",
    async (addresses) => {
      expect(await lookUp(addresses, true)).toBe("NotPublicError");
      expect(await lookUp(addresses, false)).toBe("NotPublicError");
    },
  );

  it("checks every answer: a host name that was public may become private", async () => {
    const answers = [["1.1.1.1"], ["127.0.0.1"]];
    const lookup = createPublicLookup(async () => answers.shift() ?? []);
    const lookUpOnce = () =>
      new Promise((resolve) => {
        lookup("rebinding.example", {}, (error, address) => resolve(error?.name ?? address));
      });
    expect(await lookUpOnce()).toBe("1.1.1.1");
    expect(await lookUpOnce()).toBe("NotPublicError");
  });

  it("passes on a failed resolution", async () => {
    const lookup = createPublicLookup(async () => {
      throw new RangeError("no name server");
    });
    const error = await new Promise((resolve) => lookup("shop.example", {}, resolve));
    expect(error).toBeInstanceOf(RangeError);
  });
});
