// Counts allocations of a process: loaded before glibc (LD_PRELOAD) by call_profile.py.
#include <atomic>
#include <cstddef>
#include <cstdint>

extern "C" {

void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* old, std::size_t size);

static std::atomic<std::uint64_t> count;

/// Calls of malloc, calloc and realloc so far.
__attribute__((visibility("default"))) std::uint64_t troupe_malloc_count() {
  return count.load(std::memory_order_relaxed);
}

__attribute__((visibility("default"))) void* malloc(std::size_t size) {
  count.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}
__attribute__((visibility("default"))) void* calloc(std::size_t number, std::size_t size) {
  count.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(number, size);
}
__attribute__((visibility("default"))) void* realloc(void* old, std::size_t size) {
  count.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(old, size);
}

}  // extern "C"
