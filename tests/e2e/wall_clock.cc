// Preloaded into the programs of a test: their wall clock (CLOCK_REALTIME) is off by the seconds
// that stand, as one native 64-bit number, in the file named by TROUPE_TEST_WALL_CLOCK. What the
// test writes there is seen at once: a clock that jumps.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

namespace {

std::int64_t OffsetSeconds() {
  static const auto* const offset = [] {
    static const std::atomic<std::int64_t> kNone{0};
    const char* const path = std::getenv("TROUPE_TEST_WALL_CLOCK");
    const int fd = path != nullptr ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) return &kNone;
    void* const mapped = mmap(nullptr, sizeof(std::int64_t), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    return mapped != MAP_FAILED ? static_cast<const std::atomic<std::int64_t>*>(mapped) : &kNone;
  }();
  return offset->load(std::memory_order_relaxed);
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) {
  const int result = static_cast<int>(syscall(SYS_clock_gettime, clock, now));
  if (result == 0 && clock == CLOCK_REALTIME) now->tv_sec += OffsetSeconds();
  return result;
}

int gettimeofday(timeval* now, void*) {
  timespec exact{};
  const int result = clock_gettime(CLOCK_REALTIME, &exact);
  now->tv_sec = exact.tv_sec;
  now->tv_usec = exact.tv_nsec / 1000;
  return result;
}

time_t time(time_t* out) {
  timespec exact{};
  clock_gettime(CLOCK_REALTIME, &exact);
  if (out != nullptr) *out = exact.tv_sec;
  return exact.tv_sec;
}

}  // extern "C"
