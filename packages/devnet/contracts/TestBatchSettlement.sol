// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

interface IToken {
    function balanceOf(address account) external view returns (uint256);
    function transfer(address to, uint256 value) external returns (bool);
}

interface ICollector {
    function collect(address payer, address token, uint256 amount, bytes32 channelId, bytes calldata collectorData)
        external;
}

interface IERC1271 {
    function isValidSignature(bytes32 digest, bytes calldata signature) external view returns (bytes4);
}

/// Payment channels with the interface and the behaviour of the contract that stands at
/// 0x4020074e9dF2ce1deE5A9C1b5c3f541D02a10003: the same types, digests, selectors, events, errors and checks
/// in the same order. Written for tests from that interface; it is another program.
///
/// Its domain follows its address and chain, so it works wherever it is placed.
contract TestBatchSettlement {
    struct ChannelConfig {
        address payer;
        address payerAuthorizer;
        address receiver;
        address receiverAuthorizer;
        address token;
        uint40 withdrawDelay;
        bytes32 salt;
    }

    struct Voucher {
        ChannelConfig channel;
        uint128 maxClaimableAmount;
    }

    struct VoucherClaim {
        Voucher voucher;
        bytes signature;
        uint128 totalClaimed;
    }

    struct ChannelState {
        uint128 balance;
        uint128 totalClaimed;
    }

    struct WithdrawalState {
        uint128 amount;
        uint40 initiatedAt;
    }

    struct ReceiverState {
        uint128 totalClaimed;
        uint128 totalSettled;
    }

    event ChannelCreated(bytes32 indexed channelId, ChannelConfig config);
    event ChannelClosed(bytes32 indexed channelId, ChannelConfig config);
    event Deposited(bytes32 indexed channelId, address indexed sender, uint128 amount, uint128 newBalance);
    event Claimed(bytes32 indexed channelId, address indexed sender, uint128 claimAmount, uint128 newTotalClaimed);
    event Settled(address indexed receiver, address indexed token, address indexed sender, uint128 amount);
    event Refunded(bytes32 indexed channelId, address indexed sender, uint128 amount);
    event WithdrawInitiated(bytes32 indexed channelId, uint128 amount, uint40 finalizeAfter);
    event WithdrawFinalized(bytes32 indexed channelId, address indexed sender, uint128 amount);

    error InvalidChannel();
    error ZeroDeposit();
    error DepositOverflow();
    error InvalidSignature();
    error NotReceiverAuthorizer();
    error NotAuthorizedToClaim();
    error NotAuthorizedToRefund();
    error ClaimExceedsCeiling();
    error ClaimExceedsBalance();
    error WithdrawalAlreadyPending();
    error WithdrawalNotPending();
    error NotAuthorizedToFinalizeWithdraw();
    error WithdrawDelayNotElapsed();
    error NothingToWithdraw();
    error WithdrawAmountExceedsAvailable();
    error WithdrawDelayOutOfRange();
    error EmptyBatch();
    error DepositCollectionFailed();
    error InvalidCollector();
    error InvalidRefundNonce();
    error ZeroRefund();
    error ReentrancyGuardReentrantCall();
    error SafeERC20FailedOperation(address token);
    error ECDSAInvalidSignature();
    error ECDSAInvalidSignatureLength(uint256 length);
    error ECDSAInvalidSignatureS(bytes32 s);

    uint40 public constant MIN_WITHDRAW_DELAY = 15 minutes;
    uint40 public constant MAX_WITHDRAW_DELAY = 30 days;

    bytes32 public constant CHANNEL_CONFIG_TYPEHASH = keccak256(
        "ChannelConfig(address payer,address payerAuthorizer,address receiver,address receiverAuthorizer,address token,uint40 withdrawDelay,bytes32 salt)"
    );
    bytes32 public constant VOUCHER_TYPEHASH = keccak256("Voucher(bytes32 channelId,uint128 maxClaimableAmount)");
    bytes32 public constant REFUND_TYPEHASH = keccak256("Refund(bytes32 channelId,uint256 nonce,uint128 amount)");
    bytes32 public constant CLAIM_ENTRY_TYPEHASH =
        keccak256("ClaimEntry(bytes32 channelId,uint128 maxClaimableAmount,uint128 totalClaimed)");
    bytes32 public constant CLAIM_BATCH_TYPEHASH = keccak256(
        "ClaimBatch(ClaimEntry[] claims)ClaimEntry(bytes32 channelId,uint128 maxClaimableAmount,uint128 totalClaimed)"
    );

    string internal constant NAME = "x402 Batch Settlement";
    string internal constant VERSION = "1";
    /// Above half the curve order a signature has a twin with a lower s; only the lower one is accepted.
    uint256 internal constant MAX_S = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0;

    address internal immutable PLACED_AT = address(this);
    uint256 internal immutable PLACED_ON = block.chainid;
    bytes32 internal immutable DOMAIN = buildDomain();

    mapping(bytes32 channelId => ChannelState) public channels;
    mapping(bytes32 channelId => WithdrawalState) public pendingWithdrawals;
    mapping(bytes32 channelId => uint256) public refundNonce;
    mapping(address receiver => mapping(address token => ReceiverState)) public receivers;

    /// EIP-1153, as in the deployed contract: a chain without it runs no function that changes anything.
    bool internal transient entered;

    modifier once() {
        if (entered) revert ReentrancyGuardReentrantCall();
        entered = true;
        _;
        entered = false;
    }

    // Money comes in

    function deposit(ChannelConfig calldata config, uint128 amount, address collector, bytes calldata collectorData)
        external
        once
    {
        bool lacksParty = config.payer == address(0) || config.receiver == address(0)
            || config.receiverAuthorizer == address(0) || config.token == address(0);
        if (lacksParty) revert InvalidChannel();
        if (config.withdrawDelay < MIN_WITHDRAW_DELAY || config.withdrawDelay > MAX_WITHDRAW_DELAY) {
            revert WithdrawDelayOutOfRange();
        }
        if (amount == 0) revert ZeroDeposit();
        if (collector == address(0)) revert InvalidCollector();

        bytes32 channelId = getChannelId(config);
        ChannelState storage state = channels[channelId];
        if (type(uint128).max - state.balance < amount) revert DepositOverflow();
        state.balance += amount;

        uint256 expected = IToken(config.token).balanceOf(address(this)) + amount;
        ICollector(collector).collect(config.payer, config.token, amount, channelId, collectorData);
        if (IToken(config.token).balanceOf(address(this)) != expected) revert DepositCollectionFailed();

        if (state.balance == amount && state.totalClaimed == 0) emit ChannelCreated(channelId, config);
        emit Deposited(channelId, msg.sender, amount, state.balance);
    }

    // The seller's side

    function claim(VoucherClaim[] calldata rows) external once {
        if (rows.length == 0) revert EmptyBatch();
        for (uint256 i = 0; i < rows.length; ++i) {
            if (!isSellerOf(rows[i].voucher.channel)) revert NotAuthorizedToClaim();
            claimRow(rows[i]);
        }
    }

    function claimWithSignature(VoucherClaim[] calldata rows, bytes calldata authorizerSignature) external once {
        if (rows.length == 0) revert EmptyBatch();
        address authorizer = rows[0].voucher.channel.receiverAuthorizer;
        requireSigned(authorizer, getClaimBatchDigest(rows), authorizerSignature);
        for (uint256 i = 0; i < rows.length; ++i) {
            if (rows[i].voucher.channel.receiverAuthorizer != authorizer) revert NotReceiverAuthorizer();
            claimRow(rows[i]);
        }
    }

    function settle(address receiver, address token) external once {
        ReceiverState storage state = receivers[receiver][token];
        uint128 amount = state.totalClaimed - state.totalSettled;
        if (amount == 0) return;
        state.totalSettled = state.totalClaimed;
        pay(token, receiver, amount);
        emit Settled(receiver, token, msg.sender, amount);
    }

    function refund(ChannelConfig calldata config, uint128 amount) external once {
        if (!isSellerOf(config)) revert NotAuthorizedToRefund();
        giveBack(config, getChannelId(config), amount);
    }

    function refundWithSignature(
        ChannelConfig calldata config,
        uint128 amount,
        uint256 nonce,
        bytes calldata receiverAuthorizerSignature
    ) external once {
        bytes32 channelId = getChannelId(config);
        if (nonce != refundNonce[channelId]) revert InvalidRefundNonce();
        bytes32 digest = getRefundDigest(channelId, nonce, amount);
        requireSigned(config.receiverAuthorizer, digest, receiverAuthorizerSignature);
        giveBack(config, channelId, amount);
    }

    // The buyer's side

    function initiateWithdraw(ChannelConfig calldata config, uint128 amount) external once {
        if (!isBuyerOf(config)) revert InvalidChannel();
        if (amount == 0) revert NothingToWithdraw();
        bytes32 channelId = getChannelId(config);
        WithdrawalState storage pending = pendingWithdrawals[channelId];
        if (pending.initiatedAt != 0) revert WithdrawalAlreadyPending();
        if (amount > unclaimedOf(channelId)) revert WithdrawAmountExceedsAvailable();
        uint40 now40 = uint40(block.timestamp);
        (pending.amount, pending.initiatedAt) = (amount, now40);
        emit WithdrawInitiated(channelId, amount, now40 + config.withdrawDelay);
    }

    function finalizeWithdraw(ChannelConfig calldata config) external once {
        if (!isBuyerOf(config)) revert NotAuthorizedToFinalizeWithdraw();
        bytes32 channelId = getChannelId(config);
        WithdrawalState memory pending = pendingWithdrawals[channelId];
        if (pending.initiatedAt == 0) revert WithdrawalNotPending();
        if (block.timestamp < uint256(pending.initiatedAt) + config.withdrawDelay) revert WithdrawDelayNotElapsed();
        delete pendingWithdrawals[channelId];

        uint128 amount = least(pending.amount, unclaimedOf(channelId));
        channels[channelId].balance -= amount;
        emit WithdrawFinalized(channelId, msg.sender, amount);
        tellOfEnd(config, channelId);
        if (amount > 0) pay(config.token, config.payer, amount);
    }

    function multicall(bytes[] calldata calls) external returns (bytes[] memory results) {
        results = new bytes[](calls.length);
        for (uint256 i = 0; i < calls.length; ++i) {
            (bool ok, bytes memory result) = address(this).delegatecall(calls[i]);
            if (!ok) rethrow(result);
            results[i] = result;
        }
    }

    // Digests

    function getChannelId(ChannelConfig calldata config) public view returns (bytes32) {
        return digestOf(keccak256(abi.encode(CHANNEL_CONFIG_TYPEHASH, config)));
    }

    function getVoucherDigest(bytes32 channelId, uint128 maxClaimableAmount) public view returns (bytes32) {
        return digestOf(keccak256(abi.encode(VOUCHER_TYPEHASH, channelId, maxClaimableAmount)));
    }

    function getRefundDigest(bytes32 channelId, uint256 nonce, uint128 amount) public view returns (bytes32) {
        return digestOf(keccak256(abi.encode(REFUND_TYPEHASH, channelId, nonce, amount)));
    }

    function getClaimBatchDigest(VoucherClaim[] calldata rows) public view returns (bytes32) {
        bytes memory hashes = new bytes(32 * rows.length);
        for (uint256 i = 0; i < rows.length; ++i) {
            Voucher calldata voucher = rows[i].voucher;
            bytes32 entry = keccak256(
                abi.encode(
                    CLAIM_ENTRY_TYPEHASH,
                    getChannelId(voucher.channel),
                    voucher.maxClaimableAmount,
                    rows[i].totalClaimed
                )
            );
            assembly {
                mstore(add(add(hashes, 0x20), mul(i, 0x20)), entry)
            }
        }
        return digestOf(keccak256(abi.encode(CLAIM_BATCH_TYPEHASH, keccak256(hashes))));
    }

    /// EIP-5267
    function eip712Domain()
        external
        view
        returns (
            bytes1 fields,
            string memory name,
            string memory version,
            uint256 chainId,
            address verifyingContract,
            bytes32 salt,
            uint256[] memory extensions
        )
    {
        return (hex"0f", NAME, VERSION, block.chainid, address(this), bytes32(0), new uint256[](0));
    }

    // Inner workings

    function claimRow(VoucherClaim calldata row) internal {
        ChannelConfig calldata config = row.voucher.channel;
        bytes32 channelId = getChannelId(config);
        ChannelState storage state = channels[channelId];
        if (row.totalClaimed <= state.totalClaimed) return;
        if (row.totalClaimed > row.voucher.maxClaimableAmount) revert ClaimExceedsCeiling();
        if (row.totalClaimed > state.balance) revert ClaimExceedsBalance();

        bytes32 digest = getVoucherDigest(channelId, row.voucher.maxClaimableAmount);
        if (config.payerAuthorizer == address(0)) {
            requireSigned(config.payer, digest, row.signature);
        } else if (recover(digest, row.signature) != config.payerAuthorizer) {
            revert InvalidSignature();
        }

        uint128 amount = row.totalClaimed - state.totalClaimed;
        state.totalClaimed = row.totalClaimed;
        receivers[config.receiver][config.token].totalClaimed += amount;
        emit Claimed(channelId, msg.sender, amount, row.totalClaimed);
    }

    function giveBack(ChannelConfig calldata config, bytes32 channelId, uint128 wanted) internal {
        if (wanted == 0) revert ZeroRefund();
        ++refundNonce[channelId];
        uint128 amount = least(wanted, unclaimedOf(channelId));
        if (amount == 0) return;
        channels[channelId].balance -= amount;

        WithdrawalState storage pending = pendingWithdrawals[channelId];
        if (pending.amount > amount) pending.amount -= amount;
        else delete pendingWithdrawals[channelId];

        emit Refunded(channelId, msg.sender, amount);
        tellOfEnd(config, channelId);
        pay(config.token, config.payer, amount);
    }

    function tellOfEnd(ChannelConfig calldata config, bytes32 channelId) internal {
        ChannelState memory state = channels[channelId];
        if (state.balance == 0 && state.totalClaimed == 0) emit ChannelClosed(channelId, config);
    }

    function isSellerOf(ChannelConfig calldata config) internal view returns (bool) {
        return msg.sender == config.receiver || msg.sender == config.receiverAuthorizer;
    }

    function isBuyerOf(ChannelConfig calldata config) internal view returns (bool) {
        return msg.sender == config.payer || msg.sender == config.payerAuthorizer;
    }

    function unclaimedOf(bytes32 channelId) internal view returns (uint128) {
        ChannelState memory state = channels[channelId];
        return state.balance - state.totalClaimed;
    }

    function least(uint128 a, uint128 b) internal pure returns (uint128) {
        return a < b ? a : b;
    }

    /// A token may return nothing, as some old ones do.
    function pay(address token, address to, uint128 amount) internal {
        (bool ok, bytes memory answer) = token.call(abi.encodeCall(IToken.transfer, (to, amount)));
        if (!ok) rethrow(answer);
        bool isPaid = answer.length == 0 ? token.code.length > 0 : abi.decode(answer, (uint256)) == 1;
        if (!isPaid) revert SafeERC20FailedOperation(token);
    }

    function rethrow(bytes memory reason) internal pure {
        assembly {
            revert(add(reason, 0x20), mload(reason))
        }
    }

    /// An account without code must have signed itself; one with code is asked (EIP-1271).
    function requireSigned(address signer, bytes32 digest, bytes calldata signature) internal view {
        if (signer.code.length == 0) {
            (address recovered, bytes memory fault) = tryRecover(digest, signature);
            if (fault.length > 0 || recovered != signer) revert InvalidSignature();
            return;
        }
        (bool ok, bytes memory answer) =
            signer.staticcall(abi.encodeCall(IERC1271.isValidSignature, (digest, signature)));
        bool isValid = ok && answer.length >= 32
            && abi.decode(answer, (bytes32)) == bytes32(IERC1271.isValidSignature.selector);
        if (!isValid) revert InvalidSignature();
    }

    function recover(bytes32 digest, bytes calldata signature) internal pure returns (address) {
        (address recovered, bytes memory fault) = tryRecover(digest, signature);
        if (fault.length > 0) rethrow(fault);
        return recovered;
    }

    /// The signer, or the encoded error.
    function tryRecover(bytes32 digest, bytes calldata signature) internal pure returns (address, bytes memory) {
        if (signature.length != 65) {
            return (address(0), abi.encodeWithSelector(ECDSAInvalidSignatureLength.selector, signature.length));
        }
        bytes32 s = bytes32(signature[32:64]);
        if (uint256(s) > MAX_S) return (address(0), abi.encodeWithSelector(ECDSAInvalidSignatureS.selector, s));
        address signer = ecrecover(digest, uint8(signature[64]), bytes32(signature[0:32]), s);
        if (signer == address(0)) return (signer, abi.encodeWithSelector(ECDSAInvalidSignature.selector));
        return (signer, "");
    }

    function digestOf(bytes32 structHash) internal view returns (bytes32) {
        bool isHome = address(this) == PLACED_AT && block.chainid == PLACED_ON;
        return keccak256(abi.encodePacked("\x19\x01", isHome ? DOMAIN : buildDomain(), structHash));
    }

    function buildDomain() internal view returns (bytes32) {
        return keccak256(
            abi.encode(
                keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
                keccak256(bytes(NAME)),
                keccak256(bytes(VERSION)),
                block.chainid,
                address(this)
            )
        );
    }
}
