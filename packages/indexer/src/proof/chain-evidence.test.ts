import { describe, expect, it } from "vitest";
import { createChainEvidence, noteBloom } from "./chain-evidence.ts";
import { computeLogsBloom } from "./logs-bloom.ts";

const log = { address: `0x${"ab".repeat(20)}`, topics: [] } as const;
const other = { address: `0x${"cd".repeat(20)}`, topics: [] } as const;

describe("evidence of bloom filters", () => {
  it("is not lost by one header without a filter", () => {
    const evidence = createChainEvidence();
    noteBloom(evidence, undefined, log);
    expect(evidence.blooms).toBe("unknown");
    noteBloom(evidence, computeLogsBloom([log]), log);
    noteBloom(evidence, undefined, log);
    expect(evidence.blooms).toBe("real");
  });

  it("is against the chain where a filter lacks its own block's log", () => {
    const evidence = createChainEvidence();
    noteBloom(evidence, computeLogsBloom([other]), log);
    noteBloom(evidence, computeLogsBloom([log]), log);
    expect(evidence.blooms).toBe("none");
  });
});
