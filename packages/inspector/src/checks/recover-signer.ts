import { setImmediate } from "node:timers/promises";
import {
  type Address,
  type Authorization,
  chainIdOf,
  type Hex,
  isNetwork,
  isWellFormedAddress,
  knownChains,
  type Network,
  networkOf,
  parseAuthorization,
  toLowerHex,
  transferTypedData,
  transferWithAuthorizationTypes,
} from "@coinslot/protocol";
import { hashTypedData, recoverAddress } from "viem";
import type { Comparison, OfferedWay, SignedUnder } from "../cycles/cycle.ts";
import type { PresentedPayment } from "../decode/read-payment.ts";
import { formNotes, readSignatureForm } from "./signature-form.ts";

/** The signer of a payment, and the differences of the signed EIP-712 domain to the offered one. */
export interface Recovered {
  comparisons: Comparison[];
  /** `undefined` where no domain is known under which the payer has signed. */
  signedUnder: SignedUnder | undefined;
}

/** Domain names that tokens bear, and buyers confuse. */
const usualNames = ["USD Coin", "USDC", "USDT0", "USD₮0", "Tether USD", "USDT", "EURC", "PYUSD"];
const usualVersions = ["2", "1", ""];

/** Names, networks, tokens and offers that may add to the domains that are tried. */
const maxOffered = 8;

type Types = SignedUnder["primaryType"];

/**
 * Recovers the signer under the offered domain. Where that is not the payer, looks for a domain
 * under which it is: usual names and versions, other chains, the offer's other tokens, and the type
 * of `receiveWithAuthorization`.
 */
export async function recoverSigner(
  presented: PresentedPayment,
  way: OfferedWay | undefined,
  ways: readonly OfferedWay[],
): Promise<Recovered> {
  const { paid, terms } = presented;
  const network = way?.network ?? terms.network;
  const asset = way?.asset ?? terms.asset;
  const domain = way?.domain ?? domainFor(asset, ways) ?? domainOf(terms.extra);
  if (paid === undefined || network === undefined || asset === undefined) return nothing;
  if (!isNetwork(network) || !isWellFormedAddress(asset)) return nothing;
  const authorization = parseAuthorization(paid.authorization);
  const read = readSignatureForm(paid.signature);
  const row: Comparison = {
    check: "signer",
    member: "signature",
    offered: authorization.from,
    presented: "",
    verdict: "unknown",
  };
  if (read === undefined) {
    const length = (paid.signature.length - 2) / 2;
    const note = `${length} bytes: no key's signature. An account with code may take it (EIP-1271).`;
    return {
      comparisons: [{ ...row, presented: `${length} bytes`, note }],
      signedUnder: undefined,
    };
  }
  const { recoverable: signature, form } = read;
  const expected: Candidate | undefined =
    domain === undefined ? undefined : { ...domain, network, asset, primaryType: transfer };
  const signer =
    expected === undefined ? undefined : await signerUnder(expected, authorization, signature);
  if (expected !== undefined && signer === authorization.from) {
    const comparisons = [withForm({ ...row, presented: signer }, form)];
    return { comparisons, signedUnder: toSignedUnder(expected, form) };
  }
  const offered = { network, asset, name: domain?.name, version: domain?.version };
  for (const candidate of candidatesFor(offered, ways)) {
    // A recovery takes a millisecond of the process that forwards requests: others go in between.
    await setImmediate();
    const found = await signerUnder(candidate, authorization, signature);
    if (found !== authorization.from) continue;
    const signed = withForm({ ...row, presented: found }, form);
    const comparisons = compareDomains(expected, candidate);
    return { comparisons: [signed, ...comparisons], signedUnder: toSignedUnder(candidate, form) };
  }
  const note =
    expected === undefined
      ? "The offer names no EIP-712 domain, and none that is usual fits."
      : "Another key has signed, or another message: a member was changed after signing, or the domain is unusual.";
  const comparison: Comparison = {
    ...row,
    presented: signer ?? "no address",
    verdict: expected === undefined ? "unknown" : "differs",
    note,
  };
  return { comparisons: [comparison], signedUnder: undefined };
}

/** The payer's own signature: only its form may be wrong. */
function withForm(row: Comparison, form: SignedUnder["form"]): Comparison {
  const verdict = form === "high s" ? "differs" : "same";
  return form === undefined ? { ...row, verdict } : { ...row, verdict, note: formNotes[form] };
}

const nothing: Recovered = { comparisons: [], signedUnder: undefined };
const transfer: Types = "TransferWithAuthorization";

interface Candidate {
  name: string;
  version: string;
  network: Network;
  asset: Address;
  primaryType: Types;
}

/** The types of `receiveWithAuthorization`, which has the same members. */
const receiveTypes = {
  ReceiveWithAuthorization: transferWithAuthorizationTypes.TransferWithAuthorization,
} as const;

async function signerUnder(
  { name, version, network, asset, primaryType }: Candidate,
  authorization: Authorization,
  signature: Hex,
): Promise<Address | undefined> {
  const domain = { name, version };
  const typed = transferTypedData({ authorization, network, asset, domain });
  const hash =
    primaryType === transfer
      ? hashTypedData(typed)
      : hashTypedData({ ...typed, types: receiveTypes, primaryType: "ReceiveWithAuthorization" });
  try {
    return toLowerHex(await recoverAddress({ hash, signature }));
  } catch {
    return undefined;
  }
}

/** Domains that differ from the offered one in what buyers get wrong; likely ones first. */
function candidatesFor(
  offered: {
    name: string | undefined;
    version: string | undefined;
    network: Network;
    asset: Address;
  },
  ways: readonly OfferedWay[],
): Candidate[] {
  const { name = "", version = "" } = offered;
  const base = {
    name,
    version,
    network: offered.network,
    asset: offered.asset,
    primaryType: transfer,
  };
  const offeredNames = ways.flatMap(({ domain }) => (domain === undefined ? [] : [domain.name]));
  const names = [...new Set([name, ...few(offeredNames), ...usualNames])];
  const versions = [...new Set([version, ...usualVersions])];
  const domains = names.flatMap((each) =>
    versions.map((v) => ({ ...base, name: each, version: v })),
  );
  const networks = few(ways.map(({ network }) => network));
  const chains = new Set([...networks, ...knownChains.map((c) => c.network), networkOf(31_337)]);
  const onChains = [...chains].flatMap((network) => {
    return isNetwork(network) && network !== offered.network ? [{ ...base, network }] : [];
  });
  const assets = few(ways.map(({ asset }) => asset)).flatMap((asset) =>
    isWellFormedAddress(asset) && asset !== offered.asset ? [{ ...base, asset }] : [],
  );
  const types = [{ ...base, primaryType: "ReceiveWithAuthorization" as const }];
  // Another token is often on another chain, and under another name.
  const others = ways
    .slice(0, maxOffered)
    .flatMap(({ network, asset, domain }): Candidate[] =>
      domain !== undefined && isNetwork(network) && isWellFormedAddress(asset)
        ? [{ ...domain, network, asset, primaryType: transfer }]
        : [],
    );
  return [...types, ...others, ...domains, ...onChains, ...assets];
}

/** The first different ones. */
const few = (texts: readonly string[]) => [...new Set(texts)].slice(0, maxOffered);

function compareDomains(expected: Candidate | undefined, found: Candidate): Comparison[] {
  const rows = (
    [
      ["name", "a domain's name is the token contract's, not its ticker"],
      ["version", "a domain's version is the token contract's: USDC has 2, USDT0 has 1"],
      [
        "network",
        "the domain's chainId is the chain of the offer, whatever chain the wallet is on",
      ],
      ["asset", "the domain's verifyingContract is the token of the offer"],
      ["primaryType", "the offer is paid by transferWithAuthorization"],
    ] as const
  ).map(([member, hint]): Comparison => {
    const offered = String(expected?.[member] ?? "");
    const presented = String(found[member]);
    const isSame = member === "asset" ? sameText(offered, presented) : offered === presented;
    const verdict = expected === undefined ? "unknown" : isSame ? "same" : "differs";
    const check = member === "primaryType" ? "signed type" : `domain ${domainMembers[member]}`;
    const row: Comparison = {
      check,
      member: member === "primaryType" ? member : `domain.${domainMembers[member]}`,
      offered,
      presented,
      verdict,
    };
    if (verdict === "differs") row.note = `Signed under another ${row.member}: ${hint}.`;
    return row;
  });
  return rows;
}

const domainMembers = {
  name: "name",
  version: "version",
  network: "chainId",
  asset: "verifyingContract",
} as const;

function toSignedUnder(candidate: Candidate, form: SignedUnder["form"]): SignedUnder {
  const { name, version, network, asset: verifyingContract, primaryType } = candidate;
  const signed = { name, version, chainId: chainIdOf(network), verifyingContract, primaryType };
  return form === undefined ? signed : { ...signed, form };
}

/** A challenge names no domain: an offer of x402 for the same token does. */
function domainFor(asset: string | undefined, ways: readonly OfferedWay[]) {
  if (asset === undefined) return undefined;
  return ways.find((way) => way.domain !== undefined && sameText(way.asset, asset))?.domain;
}

function domainOf(extra: Record<string, unknown> | undefined) {
  const { name, version } = extra ?? {};
  const isDomain = typeof name === "string" && typeof version === "string";
  return isDomain ? { name, version } : undefined;
}

function sameText(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}
