#include "tests/fakes/cuda/fake_kernel.h"

#include <cstdlib>

#include "tests/fakes/cuda/kernel_reader.h"

namespace troupe::fakes {
namespace {

/// Returns the value at an address; an unaligned address ends the process, as it ends a kernel.
template <class T>
T& In(std::uint64_t address) {
  if (address % sizeof(T) != 0) std::abort();
  return *reinterpret_cast<T*>(address);
}

}  // namespace

std::unique_ptr<const FakeKernel> FakeKernel::Parse(const std::string& ptx,
                                                    const std::string& name) {
  auto kernel = std::make_unique<FakeKernel>();
  KernelReader reader(*kernel, name);
  if (!reader.Read(ptx)) return nullptr;
  return kernel;
}

void FakeKernel::Run(unsigned blocks, unsigned threads,
                     const std::vector<std::uint64_t>& parameters) const {
  std::vector<std::uint64_t> registers;
  for (unsigned block = 0; block < blocks; ++block) {
    for (unsigned thread = 0; thread < threads; ++thread) {
      registers.assign({thread, threads, block, blocks});
      registers.resize(static_cast<std::size_t>(registers_), ~std::uint64_t{0});  // not zeros
      RunThread(registers, parameters);
    }
  }
}

void FakeKernel::RunThread(std::vector<std::uint64_t>& registers,
                           const std::vector<std::uint64_t>& parameters) const {
  const auto of = [&](const Operand& each) {
    return each.place < 0 ? each.number : registers[static_cast<std::size_t>(each.place)];
  };
  for (std::size_t at = 0;; ++at) {
    const Instruction& step = code_[at];
    if (step.guard >= 0 && registers[static_cast<std::size_t>(step.guard)] == 0) continue;
    const auto operand = [&](std::size_t n) {
      return n < step.operands.size() ? of(step.operands[n]) : 0;
    };
    if (step.kind == Kind::kReturn) return;
    if (step.kind == Kind::kBranch) {
      at = static_cast<std::size_t>(step.target) - 1;
      continue;
    }
    if (step.kind == Kind::kAddInMemory) {
      In<std::uint64_t>(operand(0)) += operand(1);
      continue;
    }
    std::uint64_t& to = registers[static_cast<std::size_t>(step.operands.at(0).place)];
    switch (step.kind) {
      case Kind::kParameter:
        to = parameters.at(operand(1));
        break;
      case Kind::kLoadWord:
        to = static_cast<std::uint64_t>(std::int64_t{In<std::int32_t>(operand(1))});
        break;
      case Kind::kLoadByte:
        to = In<std::uint8_t>(operand(1));
        break;
      default:
        to = step.compute(operand(1), operand(2));
    }
  }
}

}  // namespace troupe::fakes
