/** How deep a block is final in these tests. */
export const finalDepth = 10;
