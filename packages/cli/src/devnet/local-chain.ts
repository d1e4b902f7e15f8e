// A module of its own, so that it and what it imports can be loaded when, and only when, a chain is started.
export { describeDevnet, startDevnet } from "@coinslot/devnet";
