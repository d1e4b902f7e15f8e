// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

import {MessagingFee, MessagingParams, MessagingReceipt, Origin, TestEndpoint} from "./TestEndpoint.sol";
import {TestOmnichainToken} from "./TestOmnichainToken.sol";

struct SendParam {
    uint32 dstEid;
    bytes32 to;
    uint256 amountLD;
    uint256 minAmountLD;
    bytes extraOptions;
    bytes composeMsg;
    bytes oftCmd;
}

struct OFTLimit {
    uint256 minAmountLD;
    uint256 maxAmountLD;
}

struct OFTReceipt {
    uint256 amountSentLD;
    uint256 amountReceivedLD;
}

struct OFTFeeDetail {
    int256 feeAmountLD;
    string description;
}

interface IERC20Metadata {
    function decimals() external view returns (uint8);
}

/// One end of an omnichain token, as LayerZero's OFT (version 2) in the form that USDT0 uses: a contract beside the
/// token, which burns what leaves the chain and mints what arrives. Amounts travel with 6 decimals.
///
/// Anybody may configure it. Left out: composed messages, message inspectors, pre-crime.
contract TestOft {
    event OFTSent(
        bytes32 indexed guid,
        uint32 dstEid,
        address indexed fromAddress,
        uint256 amountSentLD,
        uint256 amountReceivedLD
    );
    event OFTReceived(bytes32 indexed guid, uint32 srcEid, address indexed toAddress, uint256 amountReceivedLD);
    event PeerSet(uint32 eid, bytes32 peer);

    error InvalidLocalDecimals();
    error SlippageExceeded(uint256 amountLD, uint256 minAmountLD);
    error AmountSDOverflowed(uint256 amountSD);
    error NoPeer(uint32 eid);
    error OnlyPeer(uint32 eid, bytes32 sender);
    error OnlyEndpoint(address addr);
    error NotEnoughNative(uint256 msgValue);
    error LzTokenUnavailable();
    error InvalidOptions(bytes options);
    error EnforcedPause();

    uint256 internal constant BASIS_POINTS = 10_000;

    TestEndpoint public immutable endpoint;
    address public immutable token;
    uint256 public immutable decimalConversionRate;

    mapping(uint32 eid => bytes32) public peers;
    /// Options that are added to those of the sender, for any chain and any message.
    bytes public enforcedOptions = hex"00030100110100000000000000000000000000030d40";
    /// What is kept of each transfer, as the pools of the legacy mesh do.
    uint256 public feeBps;
    OFTLimit public limit;
    bool public paused;

    constructor(address endpoint_, address token_) {
        endpoint = TestEndpoint(endpoint_);
        token = token_;
        uint8 localDecimals = IERC20Metadata(token_).decimals();
        if (localDecimals < sharedDecimals()) revert InvalidLocalDecimals();
        decimalConversionRate = 10 ** (localDecimals - sharedDecimals());
        limit = OFTLimit(0, type(uint64).max);
    }

    // Configuration

    function setPeer(uint32 eid, bytes32 peer) external {
        peers[eid] = peer;
        emit PeerSet(eid, peer);
    }

    function setEnforcedOptions(bytes calldata options) external {
        enforcedOptions = options;
    }

    function setFeeBps(uint256 feeBps_) external {
        feeBps = feeBps_;
    }

    function setLimit(uint256 minAmountLD, uint256 maxAmountLD) external {
        limit = OFTLimit(minAmountLD, maxAmountLD);
    }

    function setPaused(bool paused_) external {
        paused = paused_;
    }

    // IOFT

    function oftVersion() external pure returns (bytes4 interfaceId, uint64 version) {
        return (0x02e49c2c, 1);
    }

    function approvalRequired() external pure virtual returns (bool) {
        return false;
    }

    function sharedDecimals() public pure returns (uint8) {
        return 6;
    }

    function quoteOFT(SendParam calldata param)
        external
        view
        returns (OFTLimit memory oftLimit, OFTFeeDetail[] memory oftFeeDetails, OFTReceipt memory oftReceipt)
    {
        (uint256 sent, uint256 received) = _debitView(param.amountLD, param.minAmountLD);
        if (feeBps != 0) {
            oftFeeDetails = new OFTFeeDetail[](1);
            oftFeeDetails[0] = OFTFeeDetail(-int256(sent - received), "fee of the pool");
        }
        return (limit, oftFeeDetails, OFTReceipt(sent, received));
    }

    function quoteSend(SendParam calldata param, bool payInLzToken) external view returns (MessagingFee memory) {
        (, uint256 received) = _debitView(param.amountLD, param.minAmountLD);
        return endpoint.quote(_messageOf(param, received, payInLzToken), address(this));
    }

    function send(SendParam calldata param, MessagingFee calldata fee, address refundAddress)
        external
        payable
        returns (MessagingReceipt memory msgReceipt, OFTReceipt memory oftReceipt)
    {
        if (paused) revert EnforcedPause();
        (uint256 sent, uint256 received) = _debitView(param.amountLD, param.minAmountLD);
        _debit(msg.sender, sent);
        MessagingParams memory message = _messageOf(param, received, fee.lzTokenFee > 0);
        if (msg.value != fee.nativeFee) revert NotEnoughNative(msg.value);
        if (fee.lzTokenFee > 0) revert LzTokenUnavailable();
        msgReceipt = endpoint.send{value: msg.value}(message, refundAddress);
        emit OFTSent(msgReceipt.guid, param.dstEid, msg.sender, sent, received);
        return (msgReceipt, OFTReceipt(sent, received));
    }

    // Receiving

    function allowInitializePath(Origin calldata origin) external view returns (bool) {
        return peers[origin.srcEid] == origin.sender;
    }

    function lzReceive(Origin calldata origin, bytes32 guid, bytes calldata message, address, bytes calldata)
        external
        payable
    {
        if (msg.sender != address(endpoint)) revert OnlyEndpoint(msg.sender);
        if (_peerOf(origin.srcEid) != origin.sender) revert OnlyPeer(origin.srcEid, origin.sender);
        if (paused) revert EnforcedPause();
        // The last twenty bytes, whatever stands before them, as a chain without longer addresses does.
        address to = address(uint160(uint256(bytes32(message[:32]))));
        uint256 amount = uint256(uint64(bytes8(message[32:40]))) * decimalConversionRate;
        // Nobody can hold tokens at the zero address; they go where they can be seen to be lost.
        _credit(to == address(0) ? address(0xdead) : to, amount);
        emit OFTReceived(guid, origin.srcEid, to, amount);
    }

    // Inner workings

    function _debit(address from, uint256 sent) internal virtual {
        TestOmnichainToken(token).burn(from, sent);
    }

    function _credit(address to, uint256 amount) internal virtual {
        TestOmnichainToken(token).mint(to, amount);
    }

    function _debitView(uint256 amount, uint256 minAmount) internal view returns (uint256 sent, uint256 received) {
        sent = _removeDust(amount);
        received = _removeDust(sent - sent * feeBps / BASIS_POINTS);
        if (received < minAmount) revert SlippageExceeded(received, minAmount);
    }

    function _removeDust(uint256 amount) internal view returns (uint256) {
        return amount / decimalConversionRate * decimalConversionRate;
    }

    function _messageOf(SendParam calldata param, uint256 received, bool payInLzToken)
        internal
        view
        returns (MessagingParams memory)
    {
        uint256 amountSD = received / decimalConversionRate;
        if (amountSD > type(uint64).max) revert AmountSDOverflowed(amountSD);
        return MessagingParams(
            param.dstEid,
            _peerOf(param.dstEid),
            abi.encodePacked(param.to, uint64(amountSD)),
            _combineOptions(param.extraOptions),
            payInLzToken
        );
    }

    function _combineOptions(bytes calldata extra) internal view returns (bytes memory) {
        if (enforcedOptions.length == 0) return extra;
        if (extra.length == 0) return enforcedOptions;
        if (extra.length < 2 || bytes2(extra[:2]) != 0x0003) revert InvalidOptions(extra);
        return bytes.concat(enforcedOptions, extra[2:]);
    }

    function _peerOf(uint32 eid) internal view returns (bytes32 peer) {
        peer = peers[eid];
        if (peer == bytes32(0)) revert NoPeer(eid);
    }
}
