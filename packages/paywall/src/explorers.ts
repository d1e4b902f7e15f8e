/** Block explorers by network: each shows a transaction under `/tx/`. */
export const explorers: Readonly<Record<string, string>> = {
  "eip155:1": "https://etherscan.io",
  "eip155:10": "https://optimistic.etherscan.io",
  "eip155:137": "https://polygonscan.com",
  "eip155:988": "https://stablescan.xyz",
  "eip155:8453": "https://basescan.org",
  "eip155:9745": "https://plasmascan.to",
  "eip155:42161": "https://arbiscan.io",
  "eip155:43114": "https://snowtrace.io",
  "eip155:84532": "https://sepolia.basescan.org",
};
