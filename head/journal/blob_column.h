// A column of a row of SQLite as bytes.
#pragma once

#include <sqlite3.h>

#include <cstddef>
#include <string_view>

namespace troupe::head {

/// Valid until the statement is stepped, reset or ended. NULL reads as empty.
inline std::string_view BlobColumn(sqlite3_stmt* statement, int column) {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement, column));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, column));
  return bytes == nullptr ? std::string_view() : std::string_view(bytes, size);
}

}  // namespace troupe::head
