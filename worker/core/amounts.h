// Amounts of resources on one node, in ten-thousandths so that 0.1 GPU is exact.
//
// Pure values. An absent name is zero; zero entries are never kept, so equality is meaningful.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/wire/messages.h"

namespace troupe::worker {

inline constexpr std::uint64_t kWhole = 10000;
inline constexpr char kCpu[] = "CPU";
inline constexpr char kGpu[] = "GPU";
inline constexpr char kMemory[] = "memory";  // bytes

using Amounts = std::map<std::string, std::uint64_t>;

std::uint64_t AmountOf(const Amounts& amounts, const std::string& name);
void Add(Amounts& to, const Amounts& what);
/// Every entry of `what` fits in `from`, else nothing changes and false.
bool Subtract(Amounts& from, const Amounts& what);
/// Names given twice are summed.
Amounts AmountsFromWire(const std::vector<wire::Resource>& resources);
std::vector<wire::Resource> AmountsToWire(const Amounts& amounts);
/// "2", "0.5": without trailing zeros.
std::string AmountText(std::uint64_t ten_thousandths);

}  // namespace troupe::worker
