// Small files that hold keys and certificates: read whole, written so that a crash leaves either
// the old one or the new one.
//
// Blocking (disk). Errors name the path and the system's reason; a key that others may read is an
// error too.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/secret.h"
#include "runtime/base/status.h"

namespace troupe::net {

inline constexpr std::size_t kSmallFileBytesMax = 64 * 1024;

/// Reads a file whole. kNotFound when there is none; kTooLarge over 64 KiB.
StatusOr<std::string> ReadSmallFile(const std::string& path);
/// Reads the file of a key or a token whole. kNotFound when there is none; kTooLarge over 64 KiB;
/// kInvalid when group or others can read it.
StatusOr<Secret> ReadSecretFile(const std::string& path);
/// Makes a new file, mode 0600, synced; kAlreadyExists when the path is taken.
Status CreateSecretFile(const std::string& path, const Secret& bytes);
/// Replaces or makes a file by rename, synced.
Status ReplaceFile(const std::string& path, std::string_view bytes, int mode);

}  // namespace troupe::net
