#include "runtime/store/copy.h"

#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace troupe::store {
namespace {

constexpr std::size_t kStringFrom = 4096;

bool AskProcessor() {
#if defined(__x86_64__)
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & (1u << 9)) != 0;
#else
  return false;
#endif
}

}  // namespace

bool StringCopyIsFast() {
  static const bool fast = AskProcessor();
  return fast;
}

void CopyByString(char* to, const char* from, std::size_t bytes) {
#if defined(__x86_64__)
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
#else
  std::memcpy(to, from, bytes);
#endif
}

void CopyBytes(char* to, const char* from, std::size_t bytes) {
  if (bytes >= kStringFrom && StringCopyIsFast()) {
    CopyByString(to, from, bytes);
  } else if (bytes != 0) {
    std::memcpy(to, from, bytes);
  }
}

}  // namespace troupe::store
