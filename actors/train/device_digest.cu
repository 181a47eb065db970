// The kernel of device_digest.h. scripts/device_digest.py compiles it into device_digest_ptx.h, and
// says in CI where that is of another source than this.
//
// Each thread sums every n-th word by itself and adds its sum to the result: threads share nothing,
// so that the order in which they run is of no meaning, and no barrier or shuffle is needed.
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))

using Word64 = unsigned long long;

/// The finalizer of splitmix64 (Steele, Lea, Flood, 2014), of a word and its place, from 1.
__device__ inline Word64 Mixed(int word, Word64 place) {
  Word64 x = static_cast<Word64>(static_cast<long long>(word)) + place * 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// `words`: `bytes` bytes at a multiple of four. What is left of a last word counts as if zeros
/// followed.
extern "C" __global__ void troupe_digest(const int* words, Word64 bytes, Word64* sum) {
  const Word64 threads = __nvvm_read_ptx_sreg_ntid_x();
  const Word64 step = __nvvm_read_ptx_sreg_nctaid_x() * threads;
  const Word64 whole = bytes / 4;
  Word64 place = __nvvm_read_ptx_sreg_ctaid_x() * threads + __nvvm_read_ptx_sreg_tid_x();
  Word64 found = 0;
#pragma unroll 1
  for (; place < whole; place += step) found += Mixed(words[place], place + 1);
  if (place == whole && bytes % 4 != 0) {
    const auto* rest = reinterpret_cast<const unsigned char*>(words + whole);
    unsigned last = 0;
#pragma unroll 1
    for (unsigned at = 0; at < bytes % 4; ++at) last |= static_cast<unsigned>(rest[at]) << (8 * at);
    found += Mixed(static_cast<int>(last), place + 1);
  }
  asm volatile("red.global.add.u64 [%0], %1;" ::"l"(sum), "l"(found) : "memory");
}
