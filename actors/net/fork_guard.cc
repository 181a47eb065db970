#include "actors/net/fork_guard.h"

#include <pthread.h>
#include <unistd.h>

#include <cstdlib>
#include <new>

namespace troupe::actors {
namespace {

// A bitmap over descriptor numbers in chunks made on demand and never freed: the child's handler
// may only do what is async-signal-safe, so it reads atomics and calls close.
constexpr int kChunkBits = 4096;
constexpr int kChunks = 256;  // up to 2^20 descriptors, the kernel's default ceiling
struct Chunk {
  std::atomic<std::uint64_t> words[kChunkBits / 64]{};
};
std::atomic<Chunk*> chunks[kChunks];

std::atomic<std::uint64_t>* WordOf(int fd) {
  if (fd < 0 || fd >= kChunkBits * kChunks) return nullptr;
  std::atomic<Chunk*>& place = chunks[fd / kChunkBits];
  Chunk* chunk = place.load(std::memory_order_acquire);
  if (chunk == nullptr) {
    Chunk* made = new Chunk;
    if (place.compare_exchange_strong(chunk, made)) {
      chunk = made;
    } else {
      delete made;
    }
  }
  return &chunk->words[fd % kChunkBits / 64];
}

std::uint64_t BitOf(int fd) { return std::uint64_t{1} << (fd % 64); }

}  // namespace

std::atomic<std::uint32_t> ForkGuard::generation_{1};

void ForkGuard::Install() {
  static const int installed = pthread_atfork(nullptr, nullptr, &ForkGuard::InChild);
  (void)installed;  // ENOMEM: descriptors then stay open in children, nothing else changes
}

void ForkGuard::Guard(int fd) {
  if (auto* word = WordOf(fd)) word->fetch_or(BitOf(fd));
}

void ForkGuard::Close(int fd) {
  if (auto* word = WordOf(fd)) word->fetch_and(~BitOf(fd));
  ::close(fd);
}

void ForkGuard::InChild() {
  generation_.fetch_add(1);
  for (int c = 0; c < kChunks; ++c) {
    Chunk* chunk = chunks[c].load(std::memory_order_relaxed);
    if (chunk == nullptr) continue;
    for (int w = 0; w < kChunkBits / 64; ++w) {
      std::uint64_t bits = chunk->words[w].exchange(0, std::memory_order_relaxed);
      for (; bits != 0; bits &= bits - 1) {
        ::close(c * kChunkBits + w * 64 + __builtin_ctzll(bits));
      }
    }
  }
}

}  // namespace troupe::actors
