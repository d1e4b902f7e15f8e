interface NetworkNames {
  name: string;
  /** Ticker of the coin that pays for gas. */
  coin: string;
}

/** The known chains for people. `knownChains` of protocol would bring its schemas into the page. */
export const networks: Readonly<Record<string, NetworkNames>> = {
  "eip155:1": { name: "Ethereum", coin: "ETH" },
  "eip155:10": { name: "Optimism", coin: "ETH" },
  "eip155:137": { name: "Polygon", coin: "POL" },
  "eip155:988": { name: "Stable", coin: "USDT0" },
  "eip155:8453": { name: "Base", coin: "ETH" },
  "eip155:9745": { name: "Plasma", coin: "XPL" },
  "eip155:42161": { name: "Arbitrum", coin: "ETH" },
  "eip155:43114": { name: "Avalanche", coin: "AVAX" },
  "eip155:84532": { name: "Base Sepolia", coin: "ETH" },
};
