// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

struct MessagingParams {
    uint32 dstEid;
    bytes32 receiver;
    bytes message;
    bytes options;
    bool payInLzToken;
}

struct MessagingFee {
    uint256 nativeFee;
    uint256 lzTokenFee;
}

struct MessagingReceipt {
    bytes32 guid;
    uint64 nonce;
    MessagingFee fee;
}

struct Origin {
    uint32 srcEid;
    bytes32 sender;
    uint64 nonce;
}

interface ILayerZeroReceiver {
    function allowInitializePath(Origin calldata origin) external view returns (bool);

    function lzReceive(
        Origin calldata origin,
        bytes32 guid,
        bytes calldata message,
        address executor,
        bytes calldata extraData
    ) external payable;
}

/// The messages of one chain, as LayerZero's EndpointV2 keeps them: numbered for each path, identified by a
/// GUID, paid for in the native coin, verified and then executed, in two transactions, on the chain they are for.
///
/// Left out: message libraries, and with them who verifies. Anybody may verify here, and nothing forged is
/// worth anything. There is no LZ token, and no message is composed.
contract TestEndpoint {
    event PacketSent(bytes encodedPayload, bytes options, address sendLibrary);
    event PacketVerified(Origin origin, address receiver, bytes32 payloadHash);
    event PacketDelivered(Origin origin, address receiver);
    event LzReceiveAlert(
        address indexed receiver,
        address indexed executor,
        Origin origin,
        bytes32 guid,
        uint256 gas,
        uint256 value,
        bytes message,
        bytes extraData,
        bytes reason
    );

    error LZ_InsufficientFee(
        uint256 requiredNative, uint256 suppliedNative, uint256 requiredLzToken, uint256 suppliedLzToken
    );
    error LZ_LzTokenUnavailable();
    error LZ_PathNotInitializable();
    error LZ_PathNotVerifiable();
    error LZ_PayloadHashNotFound(bytes32 expected, bytes32 actual);
    error LZ_InvalidNonce(uint64 nonce);
    error Transfer_NativeFailed(address to, uint256 value);
    /// Of the executor, when nobody has said how much gas the message may use on arrival.
    error Executor_ZeroLzReceiveGasProvided();

    uint8 internal constant PACKET_VERSION = 1;

    uint32 public immutable eid;

    /// What a message to any chain costs.
    uint256 public nativeFee;

    mapping(address sender => mapping(uint32 dstEid => mapping(bytes32 receiver => uint64))) public outboundNonce;
    /// Up to here, all messages of a path have been executed, or verified before a later one was executed.
    mapping(address receiver => mapping(uint32 srcEid => mapping(bytes32 sender => uint64))) public lazyInboundNonce;
    /// Of messages that are verified and not executed.
    mapping(
        address receiver => mapping(uint32 srcEid => mapping(bytes32 sender => mapping(uint64 nonce => bytes32)))
    ) public inboundPayloadHash;

    constructor(uint32 eid_, uint256 nativeFee_) {
        eid = eid_;
        nativeFee = nativeFee_;
    }

    function setNativeFee(uint256 nativeFee_) external {
        nativeFee = nativeFee_;
    }

    // Sending

    function quote(MessagingParams calldata params, address) public view returns (MessagingFee memory) {
        if (params.payInLzToken) revert LZ_LzTokenUnavailable();
        // Options of type 3 are 0x0003 and then what is asked for; two bytes ask for nothing.
        if (params.options.length <= 2) revert Executor_ZeroLzReceiveGasProvided();
        return MessagingFee(nativeFee, 0);
    }

    function send(MessagingParams calldata params, address refundAddress)
        external
        payable
        returns (MessagingReceipt memory receipt)
    {
        MessagingFee memory fee = quote(params, msg.sender);
        if (msg.value < fee.nativeFee) revert LZ_InsufficientFee(fee.nativeFee, msg.value, 0, 0);
        uint64 nonce = ++outboundNonce[msg.sender][params.dstEid][params.receiver];
        bytes memory path =
            abi.encodePacked(nonce, eid, _toBytes32(msg.sender), params.dstEid, params.receiver);
        bytes32 guid = keccak256(path);
        emit PacketSent(
            abi.encodePacked(PACKET_VERSION, path, guid, params.message), params.options, address(this)
        );
        if (msg.value > fee.nativeFee) _pay(refundAddress, msg.value - fee.nativeFee);
        return MessagingReceipt(guid, nonce, fee);
    }

    // Receiving

    function verify(Origin calldata origin, address receiver, bytes32 payloadHash) external {
        uint64 lazyNonce = lazyInboundNonce[receiver][origin.srcEid][origin.sender];
        if (lazyNonce == 0 && !ILayerZeroReceiver(receiver).allowInitializePath(origin)) {
            revert LZ_PathNotInitializable();
        }
        if (!isVerifiable(origin, receiver)) revert LZ_PathNotVerifiable();
        inboundPayloadHash[receiver][origin.srcEid][origin.sender][origin.nonce] = payloadHash;
        emit PacketVerified(origin, receiver, payloadHash);
    }

    /// Whether a message may be verified, that is, has not been executed.
    function isVerifiable(Origin calldata origin, address receiver) public view returns (bool) {
        return origin.nonce > lazyInboundNonce[receiver][origin.srcEid][origin.sender]
            || inboundPayloadHash[receiver][origin.srcEid][origin.sender][origin.nonce] != bytes32(0);
    }

    function lzReceive(
        Origin calldata origin,
        address receiver,
        bytes32 guid,
        bytes calldata message,
        bytes calldata extraData
    ) external payable {
        _clearPayload(origin, receiver, abi.encodePacked(guid, message));
        ILayerZeroReceiver(receiver).lzReceive{value: msg.value}(origin, guid, message, msg.sender, extraData);
        emit PacketDelivered(origin, receiver);
    }

    /// How an executor makes known that a message could not be executed. It may be tried again by anybody.
    function lzReceiveAlert(
        Origin calldata origin,
        address receiver,
        bytes32 guid,
        uint256 gas,
        uint256 value,
        bytes calldata message,
        bytes calldata extraData,
        bytes calldata reason
    ) external {
        emit LzReceiveAlert(receiver, msg.sender, origin, guid, gas, value, message, extraData, reason);
    }

    function _clearPayload(Origin calldata origin, address receiver, bytes memory payload) internal {
        mapping(uint64 nonce => bytes32) storage hashes = inboundPayloadHash[receiver][origin.srcEid][origin.sender];
        uint64 lazyNonce = lazyInboundNonce[receiver][origin.srcEid][origin.sender];
        if (origin.nonce > lazyNonce) {
            // Every message before this one must at least be verified, so that none is lost sight of.
            for (uint64 nonce = lazyNonce + 1; nonce <= origin.nonce; nonce++) {
                if (hashes[nonce] == bytes32(0)) revert LZ_InvalidNonce(nonce);
            }
            lazyInboundNonce[receiver][origin.srcEid][origin.sender] = origin.nonce;
        }
        bytes32 actual = keccak256(payload);
        bytes32 expected = hashes[origin.nonce];
        if (expected != actual) revert LZ_PayloadHashNotFound(expected, actual);
        delete hashes[origin.nonce];
    }

    function _pay(address to, uint256 value) internal {
        (bool ok,) = to.call{value: value}("");
        if (!ok) revert Transfer_NativeFailed(to, value);
    }

    function _toBytes32(address account) internal pure returns (bytes32) {
        return bytes32(uint256(uint160(account)));
    }
}
