/**
 * `keccak256("Transfer(address,address,uint256)")`: the first topic of every ERC-20 transfer,
 * EIP-20.
 */
export const transferTopic = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
