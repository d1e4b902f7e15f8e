// A module of its own, for a lazy import when a chain is started.
export { describeDevnet, startDevnet } from "@coinslot/devnet";
