// Limits of the control wire. A peer that goes over one is told which and disconnected; each has a
// test in tests/wire.
#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe::wire {

/// Cap'n Proto part of a frame.
inline constexpr std::size_t kBodyBytesMax = 16u << 20;
/// Raw trailer of a frame: a result that travels with its marker, a blob's chunk, a payload.
inline constexpr std::size_t kAttachmentBytesMax = 16u << 20;
/// All of a frame, before its sender is authenticated.
inline constexpr std::size_t kUnauthenticatedFrameBytesMax = 4096;
/// Extension words (8 bytes each) between header and body.
inline constexpr std::size_t kExtensionWordsMax = 64;
/// Elements of any list in a control message: the ranks or nodes of one launch.
inline constexpr std::size_t kListMax = 65536;
/// Depth of structs within structs.
inline constexpr int kNestingMax = 16;
/// Segments of one Cap'n Proto message.
inline constexpr std::size_t kSegmentsMax = 64;

inline constexpr std::uint8_t kProtocolVersion = 1;
inline constexpr std::uint8_t kProtocolVersionMin = 1;

}  // namespace troupe::wire
