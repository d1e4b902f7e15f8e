import type { Setting } from "../setting.ts";

/** Every setting of the hosted facilitator, in the order of the README. */
export const facilitatorSettings = [
  {
    name: "COINSLOT_NETWORK",
    explanation: "A network to serve, such as eip155:9745 (Plasma) or eip155:8453 (Base)",
    isOptional: true,
    inFile: "networks[].network",
  },
  {
    name: "COINSLOT_RPC_URL",
    explanation: "Its JSON-RPC endpoints, separated by commas, the preferred one first",
    isOptional: true,
    isSecret: true,
    inFile: "networks[].rpcUrls",
  },
  {
    name: "COINSLOT_RPC_URL_<CHAIN_ID>",
    explanation: "The endpoints of a further network, such as COINSLOT_RPC_URL_988",
    isOptional: true,
    isSecret: true,
    inFile: "networks[].rpcUrls",
  },
  {
    name: "FACILITATOR_NETWORKS",
    explanation:
      "The networks to serve, separated by commas. Default: those with endpoints, else Plasma and Stable at their public ones",
    isOptional: true,
  },
  {
    name: "COINSLOT_TOKENS",
    explanation:
      "Tokens to settle besides USDT0, as eip155:<chain id>/<address>, separated by commas",
    isOptional: true,
    inFile: "networks[].assets",
  },
  {
    name: "FACILITATOR_SEED_PHRASE",
    explanation: "The account that pays the gas of settlements, on every network",
    isOptional: true,
    isSecret: true,
  },
  {
    name: "FACILITATOR_PRIVATE_KEY",
    explanation: "The same by its private key; one of the two has to be set",
    isOptional: true,
    isSecret: true,
  },
  {
    name: "COINSLOT_LEDGER",
    explanation: "The database of payments: sqlite:<file>, or postgres://… for several processes",
    defaultValue: "sqlite:./coinslot.db",
    isSecret: true,
    inFile: "ledger",
  },
  {
    name: "FACILITATOR_KEYS",
    explanation:
      "Callers as <name>:<key>, separated by commas; in a file as hashes by `coinslot facilitator new-key`. Default: any caller",
    isOptional: true,
    isSecret: true,
    inFile: "keys",
  },
  {
    name: "FACILITATOR_PAY_TO",
    explanation: "The allowed recipients of payments, separated by commas. Default: all",
    isOptional: true,
    inFile: "payTo",
  },
  {
    name: "FACILITATOR_REQUESTS_PER_MINUTE",
    explanation: "Rate limit per caller and endpoint; a caller is a key, or else an address",
    defaultValue: "600",
    inFile: "requestsPerMinute",
  },
  {
    name: "FACILITATOR_MAX_PAID_REQUESTS",
    explanation:
      "Verifications and settlements under way in a process; others get 503 with Retry-After",
    defaultValue: "1000",
    inFile: "maxPaidRequests",
  },
  {
    name: "FACILITATOR_PAYERS_WITH_CODE",
    explanation:
      "false refuses payers with code (contracts, EIP-7702 accounts), which runs on the relayer's gas",
    defaultValue: "true",
    inFile: "payersWithCode",
  },
  {
    name: "FACILITATOR_CODE_GAS_PER_MINUTE",
    explanation:
      "Gas that payers with code and without a record may have at risk in a minute, on each network",
    defaultValue: "4000000",
    inFile: "codeGasPerMinute",
  },
  {
    name: "FACILITATOR_CHANNEL_RECEIVERS",
    explanation:
      "Serves payment channels: the recipients of each caller's, as <caller>:<address>, separated by commas. Default: no channels",
    isOptional: true,
    inFile: "keys[].receivers",
  },
  {
    name: "FACILITATOR_CHANNEL_AUTHORIZER_PRIVATE_KEY",
    explanation:
      "Signs claims and refunds of channels for callers that leave it to this facilitator; in the config of each of their channels. Default: callers sign",
    isOptional: true,
    isSecret: true,
  },
  {
    name: "FACILITATOR_CHANNEL_NETWORKS",
    explanation: "Networks with channels, separated by commas. Default: all that are served",
    isOptional: true,
  },
  {
    name: "FACILITATOR_CHANNEL_GAS_PER_HOUR",
    explanation: "Gas that the channels of one caller may use in an hour, on each network",
    defaultValue: "60000000",
    inFile: "channelGasPerHour",
  },
  {
    name: "FACILITATOR_EVENT_SECRET",
    explanation:
      "Signs lifecycle events by the Standard Webhooks scheme: whsec_ and 24 to 64 random bytes in base64; several, separated by commas, during a rotation",
    isOptional: true,
    isSecret: true,
  },
  {
    name: "FACILITATOR_UNSAFE_PRIVATE_CALLBACKS",
    explanation:
      "For development: true lets lifecycle events go to private addresses and over plain http",
    defaultValue: "false",
    inFile: "unsafePrivateCallbacks",
  },
  {
    name: "COINSLOT_WEBHOOK_URL",
    explanation:
      "Receivers of events of payments and refunds, separated by commas: https and public addresses; none ends those of the ledger",
    isOptional: true,
    isSecret: true,
  },
  {
    name: "COINSLOT_WEBHOOK_SECRET",
    explanation:
      "Signs them by the Standard Webhooks scheme: whsec_ and 24 to 64 random bytes in base64; several, separated by commas, during a rotation",
    isOptional: true,
    isSecret: true,
  },
  {
    name: "COINSLOT_UNSAFE_PRIVATE_WEBHOOKS",
    explanation: "For development: true lets them go to private addresses and over plain http",
    isOptional: true,
  },
  {
    name: "FACILITATOR_FLOAT_SEED_PHRASE",
    explanation:
      "The float account, which pays refunds: neither a relayer nor a recipient of sales",
    isOptional: true,
    isSecret: true,
  },
  {
    name: "FACILITATOR_FLOAT_PRIVATE_KEY",
    explanation: "The same by its private key",
    isOptional: true,
    isSecret: true,
  },
  {
    name: "FACILITATOR_FLOAT_ADDRESS",
    explanation: "The same without its key: refunds wait for coinslot refunds sign elsewhere",
    isOptional: true,
  },
  {
    name: "FACILITATOR_FLOAT_MAX_PER_DAY",
    explanation:
      "Most that the float gives back in a day, on each network and in each token, in the smallest unit. Default: 100000000",
    isOptional: true,
  },
  {
    name: "FACILITATOR_FLOAT_AUTOMATIC_MAX_PER_DAY",
    explanation: "Most of it that the policies of routes give back. Default: half",
    isOptional: true,
  },
  {
    name: "FACILITATOR_OPERATOR_PORT",
    explanation: "Port of a listener for the commands of the operator over HTTP. Default: none",
    isOptional: true,
  },
  {
    name: "FACILITATOR_OPERATOR_HOST",
    explanation: "Its address. Default: 127.0.0.1, behind a proxy with TLS or a tunnel",
    isOptional: true,
  },
  {
    name: "FACILITATOR_OPERATOR_KEY",
    explanation: "Its key, 32 to 256 characters; two, separated by a comma, during a rotation",
    isOptional: true,
    isSecret: true,
  },
  {
    name: "FACILITATOR_HOST",
    explanation:
      "The address to listen on: 127.0.0.1 for this machine only, 0.0.0.0 for all interfaces",
    defaultValue: "127.0.0.1",
    inFile: "host",
  },
  {
    name: "FACILITATOR_PORT",
    explanation: "The port to listen on",
    defaultValue: "4022",
    inFile: "port",
  },
  {
    name: "FACILITATOR_TRUST_PROXY",
    explanation: "Number of trusted proxies in front, for the caller's address",
    defaultValue: "0",
    inFile: "trustProxy",
  },
  {
    name: "FACILITATOR_LOG_LEVEL",
    explanation: "debug, info, warn, error or silent",
    defaultValue: "info",
    inFile: "logLevel",
  },
  {
    name: "FACILITATOR_CONFIG",
    explanation: "A YAML or JSON file with settings, overridden by the environment",
    isOptional: true,
  },
] as const satisfies readonly Setting[];
