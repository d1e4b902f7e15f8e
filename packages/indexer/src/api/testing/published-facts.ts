/**
 * Public facts about the API that this one is compatible with, and decisions on its open points.
 * They are operations, limits, answers, and closed objects. The OpenAPI document is compared with
 * this table.
 */
export const publishedOperations = [
  {
    method: "get",
    path: "/api/v1/health",
    max: 10,
    windowSeconds: 3600,
    answers: ["200", "401", "429", "503"],
  },
  {
    method: "get",
    path: "/api/v1/chains",
    max: 60,
    windowSeconds: 60,
    answers: ["200", "401", "429", "500"],
  },
  {
    method: "get",
    path: "/api/v1/{blockchain}/{token}/{address}/token-transfers",
    max: 8,
    windowSeconds: 10,
    answers: ["200", "400", "401", "429", "500"],
  },
  {
    method: "get",
    path: "/api/v1/{blockchain}/{token}/{address}/token-balances",
    max: 4,
    windowSeconds: 10,
    answers: ["200", "400", "401", "429", "500"],
  },
  {
    method: "post",
    path: "/api/v1/batch/token-transfers",
    max: 8,
    windowSeconds: 10,
    answers: ["200", "400", "401", "413", "415", "429", "500"],
  },
  {
    method: "post",
    path: "/api/v1/batch/token-balances",
    max: 4,
    windowSeconds: 10,
    answers: ["200", "400", "401", "413", "415", "429", "500"],
  },
] as const;

/** Operations without published limits. */
export const furtherOperations = [
  {
    method: "get",
    path: "/api/v1/blockchains/{blockchain}/{token}/token-transfers/{txHash}",
    answers: ["200", "400", "401", "404", "429", "500"],
  },
  { method: "get", path: "/api/v1/keys", answers: ["200", "401", "429", "500"] },
  {
    method: "post",
    path: "/api/v1/keys",
    answers: ["200", "400", "401", "413", "415", "429", "500"],
  },
  {
    method: "delete",
    path: "/api/v1/keys/{hashedKey}",
    answers: ["200", "401", "404", "429", "500"],
  },
  { method: "get", path: "/api/v1/webhooks", answers: ["200", "401", "429", "500"] },
  {
    method: "get",
    path: "/api/v1/webhooks/{receiver}/addresses",
    answers: ["200", "400", "401", "404", "429", "500"],
  },
  {
    method: "patch",
    path: "/api/v1/webhooks/{receiver}/addresses",
    answers: ["200", "400", "401", "404", "413", "415", "429", "500"],
  },
  {
    method: "get",
    path: "/api/v1/webhooks/{receiver}/dead",
    answers: ["200", "400", "401", "404", "429", "500"],
  },
  {
    method: "post",
    path: "/api/v1/webhooks/{receiver}/replay",
    answers: ["200", "400", "401", "404", "413", "415", "429", "500"],
  },
  {
    method: "post",
    path: "/api/v1/webhooks/{receiver}/test",
    answers: ["200", "400", "401", "404", "429", "500"],
  },
] as const;

/** Objects that must not carry anything else, and what each must carry. */
export const closedSchemas = {
  Error: { required: ["error", "message", "status"], optional: [] },
  Chains: { required: ["chains"], optional: [] },
  TransfersResult: { required: ["transfers"], optional: [] },
  BalanceResult: { required: ["tokenBalance"], optional: [] },
  BalanceQuery: { required: ["blockchain", "token", "address"], optional: [] },
  TransferQuery: {
    required: ["blockchain", "token", "address"],
    optional: ["limit", "fromTs", "toTs"],
  },
  KeyRequest: { required: [], optional: ["label", "ttl"] },
  KeyList: { required: ["keys"], optional: [] },
  KeyRevoked: { required: ["success"], optional: [] },
  KeyInfo: {
    required: ["hashedKey", "owner", "ttl", "createdAt", "lastActive"],
    optional: ["label", "max", "timeWindow"],
  },
  KeyCreated: {
    required: ["key", "hashedKey", "owner", "ttl", "createdAt", "lastActive"],
    optional: ["label"],
  },
  WatchedChangeRequest: { required: [], optional: ["add", "remove"] },
  WatchedChange: { required: ["added", "removed", "watched"], optional: [] },
  WatchedList: { required: ["addresses"], optional: [] },
  ReplayRequest: { required: [], optional: ["id", "from", "to", "deadOnly"] },
} as const;

/** The members that each transfer carries; it may carry more. */
export const transferFields = [
  "blockchain",
  "blockNumber",
  "transactionHash",
  "transferIndex",
  "token",
  "amount",
  "timestamp",
  "transactionIndex",
  "logIndex",
  "from",
  "to",
] as const;
