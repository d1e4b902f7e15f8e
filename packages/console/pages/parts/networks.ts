interface NetworkNames {
  name: string;
  /** Ticker of the coin that pays for gas. */
  coin: string;
}

/** The known chains for people, by network. The shell has them out of `knownChains` of protocol. */
export const networks: Readonly<Record<string, NetworkNames>> = JSON.parse(
  document.querySelector<HTMLMetaElement>('meta[name="coinslot-networks"]')?.content ?? "{}",
);
