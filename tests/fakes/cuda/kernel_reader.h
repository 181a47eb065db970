// PTX as text -> instructions of FakeKernel. Of NVIDIA's "Parallel Thread Execution ISA": one
// entry, registers, labels, predicated branches; parameters of 64 bits.
#pragma once

#include <map>
#include <sstream>
#include <string>

#include "tests/fakes/cuda/fake_kernel.h"

namespace troupe::fakes {

class KernelReader {
 public:
  KernelReader(FakeKernel& into, std::string name);
  /// False where it holds what is not known.
  bool Read(const std::string& ptx);

 private:
  bool ReadLine(const std::string& line);
  bool ReadInstruction(std::istringstream words, std::string name);
  FakeKernel::Operand OperandOf(const std::string& text);
  int PlaceOf(const std::string& register_name);

  FakeKernel& into_;
  std::string name_;
  bool inside_ = false;
  std::map<std::string, int> places_, labels_;
  std::map<int, std::string> branches_;  // instruction -> label
};

}  // namespace troupe::fakes
