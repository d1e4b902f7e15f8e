export { lyingWallet } from "../contracts/lying-wallet.generated.ts";
export { misbehavingToken } from "../contracts/misbehaving-token.generated.ts";
export { multicall3 } from "../contracts/multicall3.generated.ts";
export { smartAccount } from "../contracts/smart-account.generated.ts";
export { testBatchSettlement } from "../contracts/test-batch-settlement.generated.ts";
export { testEndpoint } from "../contracts/test-endpoint.generated.ts";
export { testGasPriceOracle } from "../contracts/test-gas-price-oracle.generated.ts";
export { testOft } from "../contracts/test-oft.generated.ts";
export { testOftAdapter } from "../contracts/test-oft-adapter.generated.ts";
export { testTether } from "../contracts/test-tether.generated.ts";
export { testUsdt0 } from "../contracts/test-usdt0.generated.ts";
export { transferBatch } from "../contracts/transfer-batch.generated.ts";
export { type DevAccount, type DevAccounts, devSeedPhrase } from "./accounts.ts";
export {
  type ChannelFixture,
  type ClaimRow,
  channelEventsOf,
  createChannelFixture,
  encodeClaim,
  encodeRefund,
} from "./channel-fixture.ts";
export {
  type Behaviour,
  behaviours,
  type SmartAccountAnswer,
  smartAccountAnswers,
  type WalletLie,
  walletLies,
} from "./contract-modes.ts";
export type { Database } from "./database.ts";
export { backUpDatabase, type DatabaseBackup } from "./database-backup.ts";
export type { SmartAccountOptions, TokenOptions } from "./deploy.ts";
export { describeDevnet } from "./describe-devnet.ts";
export { describeSchema } from "./describe-schema.ts";
export { type Devnet, type DevnetOptions, type ReorgTransaction, startDevnet } from "./devnet.ts";
export type { DevnetClient } from "./devnet-client.ts";
export { dumpDatabase, restoreDatabase } from "./dump-database.ts";
export { type LayerZero, type OmnichainEnd, startLayerZero } from "./layer-zero.ts";
export { type Listening, listen } from "./listen.ts";
export { placeChannels } from "./place-channels.ts";
export { type Postgres, startPostgres } from "./postgres.ts";
export { type PostgresOutage, prepareOutage } from "./postgres-outage.ts";
export { type DatabaseReader, withDatabase } from "./read-database.ts";
export {
  type Program,
  type ProgramPlace,
  startCompiled,
  startProgram,
  startSource,
} from "./start-program.ts";
export { superJournalOf } from "./super-journal.ts";
export { createTestDatabase } from "./test-database.ts";
