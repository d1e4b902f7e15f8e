// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// One transaction that the account would send.
struct Step {
    address to;
    uint256 value;
    bytes data;
}

/// Carries out an account's next transactions as one, to see what they cost. It is never deployed: a node is asked to
/// pretend that this code stands at the account's own address, so each step comes from the account itself.
contract Rehearsal {
    /// Tells a step that failed from a node that never ran this code.
    error StepFailed(uint256 index, bytes reason);

    function run(Step[] calldata steps) external payable {
        for (uint256 i = 0; i < steps.length; i++) {
            (bool ok, bytes memory reason) = steps[i].to.call{value: steps[i].value}(steps[i].data);
            if (!ok) revert StepFailed(i, reason);
        }
    }

    /// The endpoint refunds what was paid too much.
    receive() external payable {}
}
