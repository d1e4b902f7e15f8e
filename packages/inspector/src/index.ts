export { type Inspector, type InspectorOptions, startInspector } from "./create-inspector.ts";
export type { Cycle, Leg, OfferedWay } from "./cycles/cycle.ts";
export { type CycleState, stateOf } from "./cycles/state-of.ts";
export { type CycleSummary, summarise } from "./cycles/summarise.ts";
export { isDevelopmentNode, isLoopbackHost } from "./local-node.ts";
export { type Recording, readRecording } from "./recording/recording.ts";
export { ReplayRefusedError } from "./replay/local-chain.ts";
export { type ReplayReport, replayCycle } from "./replay/replay-cycle.ts";
