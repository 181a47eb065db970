// Copying a value into memory that is there already.
//
// Where the processor says that its string copy is fast (erms), `rep movsb` from 4 KiB on: it does
// not read what it overwrites, which memcpy's loop does. Elsewhere memcpy.
#pragma once

#include <cstddef>

namespace troupe::store {

void CopyBytes(char* to, const char* from, std::size_t bytes);
/// The two ways, for the benchmark that shows which is faster here.
void CopyByString(char* to, const char* from, std::size_t bytes);
bool StringCopyIsFast();

}  // namespace troupe::store
