/** The depth at which a block is final in these tests. */
export const finalDepth = 10;
