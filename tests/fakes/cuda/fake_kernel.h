// A kernel of the fake CUDA: PTX, read and run one thread after the other on host memory.
//
// It knows the instructions that device_digest.cu compiles to, with their types, and refuses all
// others, as a driver refuses what is no PTX. Threads cannot wait for each other.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace troupe::fakes {

class FakeKernel {
 public:
  /// An operand of an instruction: a register, or a number in place.
  struct Operand {
    int place = -1;  // the register's number; -1: `number` counts
    std::uint64_t number = 0;
  };
  enum class Kind { kCompute, kParameter, kLoadWord, kLoadByte, kAddInMemory, kBranch, kReturn };
  using Compute = std::uint64_t (*)(std::uint64_t, std::uint64_t);
  struct Instruction {
    Kind kind = Kind::kReturn;
    Compute compute = nullptr;
    std::vector<Operand> operands;
    int guard = -1;   // the predicate that it is run under; -1: always
    int target = -1;  // target of a branch
  };
  /// Registers that a thread finds filled, in this order, before all others.
  static constexpr const char* kGiven[] = {"%tid.x", "%ntid.x", "%ctaid.x", "%nctaid.x"};

  /// The kernel of that name; none where the text has no such, or holds what is not known here.
  static std::unique_ptr<const FakeKernel> Parse(const std::string& ptx, const std::string& name);

  std::size_t parameters() const { return parameters_; }
  /// All threads of a grid of one dimension. `parameters`: 64 bits each.
  void Run(unsigned blocks, unsigned threads, const std::vector<std::uint64_t>& parameters) const;

 private:
  friend class KernelReader;

  void RunThread(std::vector<std::uint64_t>& registers,
                 const std::vector<std::uint64_t>& parameters) const;

  std::vector<Instruction> code_;
  int registers_ = 0;
  std::size_t parameters_ = 0;
};

}  // namespace troupe::fakes
