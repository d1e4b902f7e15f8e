// Written by scripts/generate-usdt-deployments.ts. Do not edit.

/** Where USDT is on the EVM chains that USDT0 connects: the original on Ethereum, USDT0 elsewhere. As of August 2026. */
export const usdtDeployments = {
  ethereum: { chainId: 1, address: "0xdAC17F958D2ee523a2206206994597C13D831ec7" },
  arbitrum: { chainId: 42161, address: "0xFd086bC7CD5C481DCC9C85ebE478A1C0b69FCbb9" },
  berachain: { chainId: 80094, address: "0x779Ded0c9e1022225f8E0630b35a9b54bE713736" },
  conflux: { chainId: 1030, address: "0xaf37E8B6C9ED7f6318979f56Fc287d76c30847ff" },
  corn: { chainId: 21000000, address: "0xB8CE59FC3717ada4C02eaDF9682A9e934F625ebb" },
  flare: { chainId: 14, address: "0xe7cd86e13AC4309349F30B3435a9d337750fC82D" },
  hyperevm: { chainId: 999, address: "0xB8CE59FC3717ada4C02eaDF9682A9e934F625ebb" },
  ink: { chainId: 57073, address: "0x0200C29006150606B650577BBE7B6248F58470c1" },
  mantle: { chainId: 5000, address: "0x779Ded0c9e1022225f8E0630b35a9b54bE713736" },
  megaeth: { chainId: 4326, address: "0xB8CE59FC3717ada4C02eaDF9682A9e934F625ebb" },
  monad: { chainId: 143, address: "0xe7cd86e13AC4309349F30B3435a9d337750fC82D" },
  morph: { chainId: 2818, address: "0xe7cd86e13AC4309349F30B3435a9d337750fC82D" },
  optimism: { chainId: 10, address: "0x01bFF41798a0BcF287b996046Ca68b395DbC1071" },
  plasma: { chainId: 9745, address: "0xB8CE59FC3717ada4C02eaDF9682A9e934F625ebb" },
  polygon: { chainId: 137, address: "0xc2132D05D31c914a87C6611C10748AEb04B58e8F" },
  rootstock: { chainId: 30, address: "0x779Ded0c9e1022225f8E0630b35a9b54bE713736" },
  stable: { chainId: 988, address: "0x779Ded0c9e1022225f8E0630b35a9b54bE713736" },
  unichain: { chainId: 130, address: "0x9151434b16b9763660705744891fA906F660EcC5" },
} as const;

export const usdtDecimals = 6;
