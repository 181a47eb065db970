// Encodes and decodes the body of a control frame.
//
// Pure and reentrant; blocks never. Hostile input ends in an error that names what was wrong, never
// in an exception or a crash. The attachment is not part of the body: frame.h carries it beside.
//   std::string bytes = EncodeBody(message);
//   StatusOr<Message> again = DecodeBody(bytes);
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/wire/messages.h"

namespace troupe::wire {

/// The Cap'n Proto bytes of `message` without its attachment; a multiple of 8 bytes long. Errors:
/// kTooLarge when it would exceed kBodyBytesMax or a list kListMax. `before` and `behind`: so many
/// zeros around it.
StatusOr<std::string> EncodeBody(const Message& message, std::size_t before = 0,
                                 std::size_t behind = 0);

/// Reads what EncodeBody wrote. `bytes` may have any alignment (an unaligned body is copied once).
/// Errors: kInvalid naming the defect. The result's attachment is empty.
StatusOr<Message> DecodeBody(std::string_view bytes);

/// The bytes of an event of the head's journal without its attachment. kTooLarge: over
/// kBodyBytesMax, or a list over kListMax.
StatusOr<std::string> EncodeEvent(const Event& event);
/// Reads what EncodeEvent wrote; the attachment is empty. kInvalid, naming the defect.
StatusOr<Event> DecodeEvent(std::string_view bytes);

}  // namespace troupe::wire
