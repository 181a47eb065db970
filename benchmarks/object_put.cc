// Costs of a put of a large value in the steady state, beside the copies that bound them: memcpy
// and `rep movsb` into memory that is there already. One line of JSON a size and a way. Usage:
// object_put [--rounds N]
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "runtime/store/copy.h"
#include "runtime/store/pool.h"
#include "runtime/store/reading.h"

namespace {

using troupe::store::Location;
using troupe::store::Pool;

double SecondsOf(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void Print(const char* way, std::uint64_t bytes, std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  std::printf(
      "{\"way\": \"%s\", \"mb\": %llu, \"median_s\": %.9f, \"best_s\": %.9f, \"rounds\": %zu}\n",
      way, static_cast<unsigned long long>(bytes / 1'000'000), seconds[seconds.size() / 2],
      seconds.front(), seconds.size());
}

void Measure(std::uint64_t bytes, int rounds) {
  const troupe::ProcessId self(1, 1);
  Pool pool(self, troupe::NodeId(1, 1));
  std::vector<char> source(bytes, 'x');
  std::vector<double> first;
  std::vector<double> by_memcpy;
  std::vector<double> by_string;
  std::vector<double> put;
  std::vector<double> announced;
  const auto once = [&] {
    auto writing = pool.Begin(bytes);
    if (!writing.ok()) std::abort();
    troupe::store::CopyBytes(writing->data, source.data(), bytes);
    return pool.Lend(*writing, self);
  };
  first.push_back(SecondsOf([&] {
    const Location made = once();
    pool.Free(self, made.slot, made.generation, true);
  }));
  Location last = once();
  std::uint64_t size = 0;
  const auto fd = pool.DescriptorOf(last.slot.segment, &size);
  auto reading = troupe::store::Reading::ReadOnly(fd->get(), size);
  if (!reading.ok()) std::abort();
  pool.Free(self, last.slot, last.generation, true);
  for (int n = 0; n < rounds; ++n) {
    // The floors copy into the same memory: what is measured is what a put adds.
    auto floor = pool.Begin(bytes);
    if (!floor.ok()) std::abort();
    by_memcpy.push_back(SecondsOf([&] { std::memcpy(floor->data, source.data(), bytes); }));
    by_string.push_back(
        SecondsOf([&] { troupe::store::CopyByString(floor->data, source.data(), bytes); }));
    pool.GiveUp(*floor);
    put.push_back(SecondsOf([&] {
      const Location made = once();
      pool.Free(self, made.slot, made.generation, true);
    }));
    last = once();
    volatile char sink = 0;
    announced.push_back(SecondsOf([&] {
      const auto data = reading->At(last);
      if (!data.ok()) std::abort();
      sink = (*data)[bytes - 1];
    }));
    static_cast<void>(sink);
    pool.Free(self, last.slot, last.generation, true);
  }
  Print("first put", bytes, first);
  Print("memcpy", bytes, by_memcpy);
  Print("rep movsb", bytes, by_string);
  Print("put", bytes, put);
  Print("get, announced", bytes, announced);
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 15;
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], "--rounds") == 0) rounds = std::atoi(argv[++i]);
  }
  for (const std::uint64_t megabytes : {8, 100, 800}) {
    Measure(megabytes * 1'000'000, megabytes < 100 ? rounds * 10 : rounds);
  }
  return 0;
}
